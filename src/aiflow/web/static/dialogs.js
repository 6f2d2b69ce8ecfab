// Dialogs: a link that is shown above the page. It stays open whatever happens below it, and gives the focus back.
import { isResting, markActs, reason } from "./connection.js";
import { recall } from "./drafts.js";
import { announce, say, toast } from "./said.js";
import { tellTimes } from "./times.js";

const dialog = document.getElementById("dialog");
let opener = null;

export const close = () => dialog.close();
// The item that the dialog was opened from: what is done there is a receipt here.
export const itemOfDialog = () => opener?.closest("[data-item]");

export function show(content, from = document.activeElement) {
  opener = from;
  dialog.replaceChildren(content);
  dialog.className = dialog.querySelector("[data-dialog-class]")?.dataset.dialogClass ?? "";
  if (dialog.querySelector("#dialog-h")) dialog.setAttribute("aria-labelledby", "dialog-h");
  recall(dialog);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus({ preventScroll: true });
  dialog.scrollTop = 0; // it is read from its beginning, wherever the focus is
}

export async function open(link) {
  if (isResting(link)) return announce(reason());
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } });
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return location.assign("/sign-in");
    const box = document.createElement("template");
    box.innerHTML = await answer.text(); // the server's own part
    if (!box.content.firstElementChild) return;
    tellTimes(box.content);
    if (answer.ok) show(box.content, link);
    else toast(box.content.firstElementChild);
    markActs();
  } catch {
    say(reason());
  } finally {
    link.removeAttribute("aria-busy");
  }
}

// Back to where it was opened from, or to what stands there now.
function giveFocusBack() {
  const now = document.activeElement;
  if (now && now !== document.body && now.isConnected && !dialog.contains(now)) return;
  const twin = opener?.href && document.querySelector(`#app a[href="${CSS.escape(opener.getAttribute("href"))}"]`);
  (opener?.isConnected ? opener : twin)?.focus?.({ preventScroll: true });
}

export function startDialogs() {
  dialog.addEventListener("close", giveFocusBack);
  document.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) return close();
    const link = event.target.closest("a[data-dialog]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    open(link);
  });
}
