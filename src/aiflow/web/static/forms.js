// Forms send themselves: busy at once, a receipt in their place, why not above them.
import { isResting, reason } from "./connection.js";
import { itemOfDialog, close } from "./dialogs.js";
import { forget, startDrafts } from "./drafts.js";
import { hold, letGo, noticePlace, settle } from "./keep.js";
import { announce, say, toast } from "./said.js";

const app = document.getElementById("app");
const dialog = document.getElementById("dialog");
const sending = new WeakSet();
const LOOK_AGAIN = 500;
let number = 0;

function part(text) {
  const template = document.createElement("template");
  template.innerHTML = text; // the server's own part, in which everything else is escaped
  return template.content.firstElementChild;
}

// What a form is about: one in a notice is about what was in the way, one in a dialog about what that was opened from.
const itemOf = (form) => (form.closest(".notice") ? null : dialog.contains(form) ? itemOfDialog() : form.closest("[data-item]"));

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
  const item = itemOf(form);
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
  if (isDone) return receive(form, submitter, told, item);
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
  else if ([...told.querySelectorAll("button:not([type=button])")].some((each) => !each.form) && form.isConnected) form.prepend(told); // its button is the form's
  else if (form.isConnected) noticePlace(form).before(told);
  else document.getElementById("main").prepend(told);
  told.scrollIntoView({ block: "nearest" });
}

function receive(form, submitter, told, item) {
  forget(form);
  if (told.dataset.accepting) return watch(form, submitter, told);
  // What was made or saved is shown where it is: the receipt's link, or this page anew.
  if ("go" in form.dataset) return location.assign(told.querySelector("a")?.href ?? location.href);
  const isAsked = dialog.contains(form);
  form.closest(".notice")?.remove();
  if (isAsked) close();
  if (item?.isConnected) settle(item, told);
  else toast(told);
  // What can be pressed next is known when the page has changed.
  const end = () => setBusy(form, submitter, false);
  app.addEventListener("htmx:after:swap", end, { once: true });
  setTimeout(end, 3000);
  document.body.dispatchEvent(new Event("aiflow:done"));
}

// Several are accepted one after the other: their list stays, and says of each how far it is until all is decided.
function watch(form, submitter, list) {
  setBusy(form, submitter, false);
  refuse(form, list);
  const decided = () => list.querySelector(".decided").textContent;
  announce(decided());
  document.body.dispatchEvent(new Event("aiflow:done"));
  let heard = list.innerHTML;
  const look = async () => {
    if (!list.isConnected || !("goesOn" in list.dataset)) return;
    const answer = await fetch(list.dataset.accepting, { headers: { "HX-Request": "true" } }).catch(() => null);
    const now = answer?.ok && !answer.redirected ? part(await answer.text()) : null;
    if (now && now.innerHTML !== heard) {
      heard = now.innerHTML;
      const before = decided();
      list.toggleAttribute("data-goes-on", "goesOn" in now.dataset);
      list.replaceChildren(...now.childNodes);
      if (decided() !== before) {
        announce(decided());
        document.body.dispatchEvent(new Event("aiflow:done")); // the reader's own doing: its rows go
      }
    }
    setTimeout(look, LOOK_AGAIN);
  };
  setTimeout(look, LOOK_AGAIN);
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
    if (form.method === "post" && isResting(form)) {
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
