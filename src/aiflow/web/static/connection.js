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
const ACTS = "#app :is([data-act] button:not([type=button]), button[form], a[data-dialog]), #dialog [data-act] button:not([type=button])";
// A stream that breaks and is back by then was not lost.
const GRACE = 1500;

let lostAt = null;
let timer = null;
let counting = null;
let again = 0;
export const isLost = () => lostAt !== null;
export const isShaky = () => isLost() || timer !== null;
// What the page is about may be gone: then nothing about it can be done, and all else can.
const gone = () => document.getElementById("gone");
export const isResting = (node) => isLost() || (gone() !== null && node.closest("#main") !== null);
export const reason = () => (isLost() || !gone() ? lost.dataset.reason : gone().querySelector("h2").firstChild.textContent.trim());

// Disabled in a way that keeps the focus and can say why.
export function markActs() {
  for (const each of document.querySelectorAll(isResting(document.getElementById("main") ?? html) ? ACTS : "[data-resting]")) {
    if (isResting(each) && !each.closest("#gone")) rest(each);
    else if ("resting" in each.dataset) wake(each);
  }
}

function rest(node) {
  node.dataset.resting ??= node.title;
  node.title = reason();
  node.setAttribute("aria-disabled", "true");
  node.setAttribute("aria-describedby", isLost() ? "lost-words" : "gone");
}

function wake(node) {
  node.title = node.dataset.resting;
  if (!node.title) node.removeAttribute("title");
  for (const name of ["aria-disabled", "aria-describedby", "data-resting"]) node.removeAttribute(name);
}

// The server's own page about what is not there says so in words: they stand above what was there, which can still be read.
export function setGone(text) {
  if (document.querySelector("#main > [data-refused]")) return; // it has said so since it was opened
  const page = document.createElement("template");
  page.innerHTML = text;
  const told = page.content.querySelector(".notice");
  const before = gone();
  if (before?.textContent === told?.textContent) return;
  before?.remove();
  if (told) {
    told.id = "gone";
    told.setAttribute("hx-morph-skip", "");
    document.getElementById("main").prepend(told);
  }
  markActs();
}

function show() {
  clearTimeout(timer);
  timer = null;
  lostAt = new Date();
  const told = lost.querySelector("[data-since-when]");
  const time = lostAt.toLocaleTimeString(html.lang, { hour: "numeric", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
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
    if (isLost()) state.dataset.live = state.textContent;
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
  live()?.removeAttribute("hidden"); // without a script nothing says that it is live
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
