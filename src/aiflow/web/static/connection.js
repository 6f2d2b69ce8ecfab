// The connection: said in words when it is lost, found again without a reload, and nothing can be pressed meanwhile.
import { listen } from "./stream.js";
import { announce } from "./said.js";

const html = document.documentElement;
const app = document.getElementById("app");
const lost = document.getElementById("lost");
const words = document.getElementById("lost-words");
const next = document.getElementById("lost-again");
const found = document.getElementById("found");
const live = () => document.getElementById("live");
const ACTS = "#app :is([data-act] button:not([type=button]), a[data-dialog]), #dialog [data-act] button:not([type=button])";
// A stream that breaks and is back by then was not lost.
const GRACE = 1500;

let lostAt = null;
let timer = null;
let counting = null;
let again = 0;
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
      each.setAttribute("aria-describedby", "lost-words");
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
  lost.hidden = words.hidden = false;
  html.classList.add("was-lost"); // room at the end of the page, which stays: nothing jumps when it is found
  count();
  counting = setInterval(count, 250);
  draw();
}

// Says when it is tried again; no live region, or a screen reader would hear every second.
function count() {
  const seconds = Math.ceil((again - Date.now()) / 1000);
  const said = seconds > 0 ? next.dataset.in.replace("{n}", seconds) : next.dataset.now;
  if (next.textContent !== said) next.textContent = said;
}

function draw() {
  html.classList.toggle("stale", isLost());
  const [dot, state] = live()?.children ?? [];
  dot?.classList.toggle("dot--lost", isLost());
  if (state) {
    state.dataset.live ??= state.textContent;
    state.textContent = isLost() ? live().dataset.lost : state.dataset.live;
  }
  markActs();
}

function setLost(isSilent) {
  if (isLost()) return count();
  if (isSilent) show();
  else timer ??= setTimeout(show, GRACE);
}

function setFound() {
  clearTimeout(timer);
  timer = null;
  if (!isLost()) return false;
  lostAt = null;
  clearInterval(counting);
  lost.hidden = words.hidden = true;
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
    if (fact.kind === "lost") { again = fact.again; return setLost(fact.isSilent); }
    if (fact.kind === "refused") return change(true); // a page that may no longer be read leads to the sign-in
    if (setFound() || (fact.kind === "open" && opened++)) change();
    if (fact.kind === "hello" && fact.ids.version !== app.dataset.version) askForReload();
    if (fact.kind === "hello" || fact.kind === "open") return;
    document.body.dispatchEvent(new CustomEvent("aiflow:fact", { detail: fact }));
    if (fact.kind === "bye" && fact.ids.reason === "signed_out") location.assign("/sign-in");
    else if (!["log", "still", "bye"].includes(fact.kind)) change();
  };
  const onTry = (tryNow) => document.getElementById("lost-try").addEventListener("click", () => {
    again = 0;
    count();
    tryNow();
  });
  if (typeof SharedWorker === "undefined") return onTry(connectAlone(hear, change));
  const worker = new SharedWorker("/static/stream.js", { type: "module", name: `aiflow ${app.dataset.version}` });
  worker.port.onmessage = (message) => hear(message.data);
  onTry(() => worker.port.postMessage("again"));
  addEventListener("pagehide", () => worker.port.postMessage("bye"));
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    worker.port.postMessage("hello");
    change();
  });
}

// No worker for all tabs (Android): a stream of its own, closed while nobody looks.
function connectAlone(hear, change) {
  let stream = document.hidden ? null : listen(hear);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stream?.close(); stream = null; } else if (!stream) { stream = listen(hear); change(); }
  });
  return () => stream?.tryNow();
}

function askForReload() {
  const update = document.getElementById("update");
  if (!update.hidden) return;
  update.hidden = false;
  announce(update.querySelector("b").textContent);
}
