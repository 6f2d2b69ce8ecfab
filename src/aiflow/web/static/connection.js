// The connection: said in words when it is lost, found again without a reload, and nothing can be pressed meanwhile.
import { listen } from "./stream.js";
import { announce } from "./said.js";

const html = document.documentElement;
const app = document.getElementById("app");
const lost = document.getElementById("lost");
const found = document.getElementById("found");
const live = () => document.getElementById("live");
const ACTS = "#app :is([data-act] button:not([type=button]), a[data-dialog]), #dialog [data-act] button:not([type=button])";
// A stream that breaks and is back by then was not lost.
const GRACE = 1500;

let lostAt = null;
let timer = null;
export const isLost = () => lostAt !== null;
export const isShaky = () => isLost() || timer !== null;
export const reason = () => lost.dataset.reason;

// Disabled in a way that keeps the focus and can say why.
export function markActs() {
  for (const each of document.querySelectorAll(isLost() ? ACTS : "[data-resting]")) {
    if (isLost()) {
      if ("resting" in each.dataset) continue;
      each.dataset.resting = each.title;
      each.title = reason();
      each.setAttribute("aria-disabled", "true");
      each.setAttribute("aria-describedby", "lost");
    } else {
      each.title = each.dataset.resting;
      if (!each.title) each.removeAttribute("title");
      for (const name of ["aria-disabled", "aria-describedby", "data-resting"]) each.removeAttribute(name);
    }
  }
}

function show() {
  clearTimeout(timer);
  timer = null;
  lostAt = new Date();
  const told = lost.querySelector("[data-since-when]");
  const time = lostAt.toLocaleTimeString(html.lang, { hour: "numeric", minute: "2-digit", second: "2-digit" });
  told.textContent = told.dataset.sinceWhen.replace("{time}", time);
  found.hidden = true;
  lost.hidden = false;
  draw();
}

function draw() {
  html.classList.toggle("stale", isLost());
  const [dot, words] = live()?.children ?? [];
  dot?.classList.toggle("dot--lost", isLost());
  if (words) {
    words.dataset.live ??= words.textContent;
    words.textContent = isLost() ? live().dataset.lost : words.dataset.live;
  }
  markActs();
}

function setLost(isSilent) {
  if (isLost()) return;
  if (isSilent) show();
  else timer ??= setTimeout(show, GRACE);
}

function setFound() {
  clearTimeout(timer);
  timer = null;
  if (!isLost()) return false;
  lostAt = null;
  lost.hidden = true;
  draw();
  found.hidden = false;
  announce(found.textContent);
  setTimeout(() => (found.hidden = true), 3000);
  return true;
}

// `change()` fetches the page again.
export function connect(change) {
  if (!app) return;
  let opened = 0;
  const hear = (fact) => {
    if (fact.kind === "lost") return setLost(fact.isSilent);
    if (fact.kind === "refused") return change(true); // a page that may no longer be read leads to the sign-in
    if (setFound() || (fact.kind === "open" && opened++)) change();
    if (fact.kind === "hello" && fact.ids.version !== app.dataset.version) askForReload();
    if (fact.kind === "hello" || fact.kind === "open") return;
    document.body.dispatchEvent(new CustomEvent("aiflow:fact", { detail: fact }));
    if (fact.kind === "bye" && fact.ids.reason === "signed_out") location.assign("/sign-in");
    else if (!["log", "still", "bye"].includes(fact.kind)) change();
  };
  if (typeof SharedWorker === "undefined") return connectAlone(hear, change);
  const worker = new SharedWorker("/static/stream.js", { type: "module", name: `aiflow ${app.dataset.version}` });
  worker.port.onmessage = (message) => hear(message.data);
  addEventListener("pagehide", () => worker.port.postMessage("bye"));
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    worker.port.postMessage("hello");
    change();
  });
}

// No worker for all tabs (Android): a stream of its own, closed while nobody looks.
function connectAlone(hear, change) {
  let close = document.hidden ? null : listen(hear);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close?.(); close = null; } else if (!close) { close = listen(hear); change(); }
  });
}

function askForReload() {
  const update = document.getElementById("update");
  if (!update.hidden) return;
  update.hidden = false;
  announce(update.querySelector("b").textContent);
}
