// Forms send themselves: busy at once, a receipt in their place, why not above them.
import { isLost, reason } from "./connection.js";
import { itemOfDialog, close } from "./dialogs.js";
import { forget, startDrafts } from "./drafts.js";
import { hold, letGo, noticePlace, settle } from "./keep.js";
import { announce, say, toast } from "./said.js";

const app = document.getElementById("app");
const dialog = document.getElementById("dialog");
const sending = new WeakSet();
let number = 0;

function part(text) {
  const template = document.createElement("template");
  template.innerHTML = text; // the server's own part, in which everything else is escaped
  return template.content.firstElementChild;
}

function setBusy(form, submitter, isBusy) {
  submitter?.toggleAttribute("aria-busy", isBusy);
  if (isBusy) submitter?.setAttribute("aria-busy", "true");
  for (const button of form.querySelectorAll("button:not([data-close])")) {
    if (isBusy) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
  isBusy ? sending.add(form) : sending.delete(form);
}

async function send(form, submitter) {
  if (sending.has(form)) return;
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form, submitter)) fields.append(name, value);
  const address = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  const item = form.closest("[data-item]");
  for (const old of document.querySelectorAll(`.notice[data-of="${CSS.escape(form.getAttribute("action"))}"]`)) old.remove();
  setBusy(form, submitter, true);
  if (item) hold(item);
  let told = null;
  let isDone = false;
  try {
    const answer = await fetch(address, { method: "POST", body: fields, headers: { "HX-Request": "true" } });
    const text = await answer.text();
    if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/sign-in")) return location.assign("/sign-in");
    told = part(text) ?? plain(text);
    isDone = answer.ok;
  } catch {
    say(reason()); // no connection: the banner says so, and what was typed stays
  }
  if (isDone) return receive(form, submitter, told);
  if (item) letGo(item);
  setBusy(form, submitter, false);
  if (told) refuse(form, told);
}

// An answer that is no part of a page: what stopped it before the page was asked.
function plain(text) {
  const node = document.createElement("div");
  node.className = "notice";
  node.role = "alert";
  try { node.textContent = JSON.parse(text).error.message; } catch { return null; }
  return node;
}

function refuse(form, told) {
  told.id ||= `notice-${++number}`;
  told.dataset.of = form.getAttribute("action");
  told.setAttribute("hx-morph-skip", "");
  if (dialog.contains(form)) (form.querySelector(".in") ?? form).prepend(told);
  else if (told.querySelector("button:not([type=button])") && form.isConnected) form.prepend(told); // its button is the form's
  else if (form.isConnected) noticePlace(form).before(told);
  else document.getElementById("main").prepend(told);
  told.scrollIntoView({ block: "nearest" });
}

function receive(form, submitter, told) {
  forget(form);
  // What was made or saved is shown where it is: the receipt's link, or this page anew.
  if ("go" in form.dataset) return location.assign(told.querySelector("a")?.href ?? location.href);
  const item = dialog.contains(form) ? itemOfDialog() : form.closest("[data-item]");
  if (dialog.contains(form)) close();
  if (item?.isConnected) settle(item, told);
  else toast(told);
  // What can be pressed next is known when the page has changed.
  const end = () => setBusy(form, submitter, false);
  app.addEventListener("htmx:after:swap", end, { once: true });
  setTimeout(end, 3000);
  document.body.dispatchEvent(new Event("aiflow:done"));
}

// Copied, or at least chosen where a browser does not let a page copy.
async function copy(button) {
  const field = button.closest(".kept")?.querySelector("textarea");
  const text = field ? field.value : button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
    say(button.dataset.said);
  } catch {
    field ? field.select() : getSelection().selectAllChildren(button.previousElementSibling);
  }
}

export function startForms() {
  startDrafts();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (isLost() && form.method === "post") {
      event.preventDefault();
      return announce(reason());
    }
    if (!form.matches("form[data-act]") || event.defaultPrevented) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
}
