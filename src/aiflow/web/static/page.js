// What every page does: stay live, send forms, open dialogs, hear keys. No framework, no inline handlers.
import { listen } from "./stream.js";
import { startForms } from "./forms.js";
import { startKeys } from "./keys.js";

const html = document.documentElement;
const app = document.getElementById("app");

// --- Live: the stream says that something changed, htmx fetches the page again and changes what is different.

let isStale = false;
let waiting = null;
let last = 0;
function change() {
  if (document.hidden) { isStale = true; return; }
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = null;
    last = Date.now();
    document.body.dispatchEvent(new Event("aiflow:change"));
  }, Math.max(60, 400 - (Date.now() - last)));
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && isStale) { isStale = false; change(); }
});
document.body.addEventListener("aiflow:done", change);
setInterval(change, 60_000); // "3 min ago"

// What a reader has open or is about to press stays as it is while the rest changes.
document.body.addEventListener("htmx:before:swap", (event) => {
  for (const task of event.detail.tasks ?? []) {
    const fragment = task.fragment ?? task.content;
    if (!fragment?.querySelectorAll) continue;
    for (const open of app.querySelectorAll("details[id][open]")) fragment.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    for (const cursor of app.querySelectorAll("[id][aria-current='true']")) fragment.querySelector(`#${CSS.escape(cursor.id)}`)?.setAttribute("aria-current", "true");
    keepHeld(fragment);
  }
});
// A receipt stays where its buttons were until the pointer and the focus have left: no other button slides under them.
function keepHeld(fragment) {
  for (const held of app.querySelectorAll("[data-held]")) {
    const now = fragment.querySelector(`#${CSS.escape(held.id)}`);
    const copy = held.cloneNode(true);
    if (now) { now.replaceWith(copy); continue; }
    const before = held.previousElementSibling?.id && fragment.querySelector(`#${CSS.escape(held.previousElementSibling.id)}`);
    const list = held.parentElement?.id && fragment.querySelector(`#${CSS.escape(held.parentElement.id)}`);
    if (before) before.after(copy);
    else list?.prepend(copy);
  }
}

// --- The connection: said in words when it is lost, and found again without a reload.

const lost = document.getElementById("lost");
let version = null;
let lostAt = null;
let lostTimer = null;
function setLost() {
  if (lostAt || lostTimer) return;
  lostTimer = setTimeout(() => {
    lostAt = new Date();
    const told = lost.querySelector("[data-since-when]");
    told.textContent = told.dataset.sinceWhen.replace("{time}", lostAt.toLocaleTimeString(html.lang, { hour: "numeric", minute: "2-digit", second: "2-digit" }));
    lost.hidden = false;
    html.classList.add("stale");
    for (const button of document.querySelectorAll("#app [data-act] button, #dialog [data-act] button")) button.disabled = true;
  }, 1500);
}
function setFound() {
  clearTimeout(lostTimer);
  lostTimer = null;
  if (!lostAt) return;
  lostAt = null;
  lost.hidden = true;
  html.classList.remove("stale");
  for (const button of document.querySelectorAll("[data-act] button")) button.disabled = false;
  const found = document.getElementById("found");
  found.hidden = false;
  setTimeout(() => (found.hidden = true), 3000);
  change();
}

function hear(fact) {
  if (fact.kind === "lost") return setLost();
  setFound();
  if (fact.kind === "hello") {
    if (version && version !== fact.ids.version) document.getElementById("update")?.removeAttribute("hidden");
    version = fact.ids.version;
    return;
  }
  document.body.dispatchEvent(new CustomEvent("aiflow:fact", { detail: fact }));
  if (fact.kind === "bye" && fact.ids.reason === "signed_out") location.assign("/sign-in");
  else if (!["log", "open", "still"].includes(fact.kind)) change();
}

function connect() {
  if (!app) return;
  if (typeof SharedWorker !== "undefined") {
    const worker = new SharedWorker("/static/stream.js", { type: "module", name: "aiflow" });
    worker.port.onmessage = (message) => hear(message.data);
    addEventListener("pagehide", () => worker.port.postMessage("bye"));
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    return;
  }
  // No worker for all tabs (Android): a stream of its own, closed while nobody looks.
  let close = document.hidden ? null : listen(hear);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close?.(); close = null; isStale = true; } else close ??= listen(hear);
  });
}
connect();

// --- Clocks tick here between two events; their widths do not change (tabular numbers).

function clock(seconds) {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
setInterval(() => {
  if (lostAt || document.hidden) return;
  for (const each of document.querySelectorAll("[data-since]")) {
    if (each.dataset.since) each.textContent = clock(Math.max(0, Math.floor(Date.now() / 1000 - Number(each.dataset.since))));
  }
}, 1000);

// --- Theme, at once and kept in a cookie that the server reads.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-toggle]")) return;
  event.preventDefault();
  const isDark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  html.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `aiflow_theme=${html.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
});

startForms();
startKeys();
