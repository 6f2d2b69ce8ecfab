// Forms send themselves: busy at once, a receipt in their place, why not above them. Drafts survive everything.

const dialog = document.getElementById("dialog");

export function toast(node) {
  const box = document.createElement("div");
  box.className = "toast";
  box.append(...node.childNodes);
  document.getElementById("toasts").append(box);
  const leave = () => (box.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : box.remove());
  setTimeout(leave, 6000);
}

export function say(words) {
  const node = document.createElement("p");
  node.textContent = words;
  toast(node);
}

function part(text) {
  const template = document.createElement("template");
  template.innerHTML = text; // the server's own part, in which everything else is escaped
  return template.content.firstElementChild;
}

async function send(form, submitter) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form, submitter)) fields.append(name, value);
  form.querySelector(":scope .notice")?.remove();
  submitter?.setAttribute("aria-busy", "true");
  const buttons = [...form.querySelectorAll("button")];
  try {
    for (const button of buttons) button.disabled = true;
    const answer = await fetch(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body: fields, headers: { "HX-Request": "true" } });
    const told = part(await answer.text());
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return location.assign("/sign-in");
    if (!answer.ok || !told) return refuse(form, told);
    forget(form);
    receive(form, told);
  } catch {
    refuse(form, null); // no connection: the banner says so
  } finally {
    submitter?.removeAttribute("aria-busy");
    for (const button of buttons) button.disabled = false;
  }
}

function refuse(form, told) {
  if (!told) return;
  form.prepend(told);
  told.scrollIntoView({ block: "nearest" });
}

function receive(form, told) {
  // What was made or saved is shown where it is: the receipt's link, or this page anew.
  if ("go" in form.dataset) return location.assign(told.querySelector("a")?.href ?? location.href);
  const item = form.closest("[data-item]");
  if (dialog.contains(form)) dialog.close();
  if (item) hold(item, told);
  else toast(told);
  document.body.dispatchEvent(new Event("aiflow:done"));
}

// The item keeps its height until pointer and focus have left it.
function hold(item, told) {
  item.style.minHeight = `${item.offsetHeight}px`;
  item.dataset.held = "";
  item.replaceChildren(told);
  const release = () => {
    if (item.matches(":hover, :focus-within")) return;
    delete item.dataset.held;
    item.style.minHeight = "";
    document.body.dispatchEvent(new Event("aiflow:done"));
  };
  item.addEventListener("pointerleave", () => setTimeout(release, 300));
  setTimeout(release, 4000);
}

// --- Drafts: what was typed is kept in this tab until it was sent.

const key = (field) => `draft ${field.dataset.draft}`;
function remember(event) {
  const field = event.target.closest?.("[data-draft]");
  if (!field) return;
  try { field.value ? sessionStorage.setItem(key(field), field.value) : sessionStorage.removeItem(key(field)); } catch { /* private mode */ }
}
export function recall(at = document) {
  for (const field of at.querySelectorAll("[data-draft]")) {
    try { field.value ||= sessionStorage.getItem(key(field)) ?? ""; } catch { /* private mode */ }
  }
}
function forget(form) {
  for (const field of form.querySelectorAll("[data-draft]")) {
    try { sessionStorage.removeItem(key(field)); } catch { /* private mode */ }
  }
}

// --- Dialogs: a link that is shown above the page.

export async function open(address) {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return location.assign("/sign-in");
  const text = await answer.text();
  const told = part(text);
  if (!told) return;
  if (!answer.ok) return toast(told);
  const box = document.createElement("template");
  box.innerHTML = text;
  dialog.replaceChildren(box.content);
  if (dialog.querySelector("#dialog-h")) dialog.setAttribute("aria-labelledby", "dialog-h");
  recall(dialog);
  if (!dialog.open) dialog.showModal();
}

export function startForms() {
  recall();
  document.addEventListener("input", remember);
  document.body.addEventListener("htmx:after:swap", () => recall());
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-act]");
    if (!form || event.defaultPrevented) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  document.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) return dialog.close();
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      open(link.href);
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      navigator.clipboard?.writeText(copy.previousElementSibling.textContent);
      say(copy.dataset.said);
    }
  });
  // Enter that ends a Japanese conversion never sends; Ctrl+Enter does what is recommended.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const form = event.target.closest?.("form[data-act]");
    if (form && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(form.querySelector(".btn--go") ?? undefined);
    }
  });
}
