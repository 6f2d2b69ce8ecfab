// What every page does: stay live, send forms, open dialogs, hear keys. No framework, no inline handlers.
import { connect, isLost, isShaky, markActs, setGone } from "./connection.js";
import { startDialogs } from "./dialogs.js";
import { startForms } from "./forms.js";
import { startKeeping } from "./keep.js";
import { startKeys } from "./keys.js";
import { followLanguage } from "./language.js";

const html = document.documentElement;
const app = document.getElementById("app");

// --- Live: the stream says that something changed, htmx fetches the page again and changes what is different.

const GAP = 500; // so often at most
let isStale = false;
let waiting = null;
let last = 0;
function change(isEvenIfLost = false) {
  const isForced = isEvenIfLost === true;
  if (document.hidden) { isStale = true; return; }
  if (waiting || (isShaky() && !isForced)) return; // a stream that opens again brings another
  waiting = setTimeout(() => {
    waiting = null;
    if (document.hidden) { isStale = true; return; }
    if (isShaky() && !isForced) return;
    last = Date.now();
    document.body.dispatchEvent(new Event("aiflow:change"));
  }, Math.max(60, GAP - (Date.now() - last)));
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && isStale) { isStale = false; change(); }
});
document.body.addEventListener("aiflow:done", change);
setInterval(change, 60_000); // "3 min ago"

// What cannot be fetched leaves the page as it is; who may no longer read it goes to the sign-in.
async function fetchQuietly(address, options) {
  try {
    const answer = await fetch(address, options);
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") location.assign("/sign-in");
    if (answer.ok || answer.status === 404) setGone(answer.ok ? "" : await answer.text());
    return answer.ok && !answer.redirected ? answer : new Response(null, { status: 204 });
  } catch {
    return new Response(null, { status: 204 });
  }
}
app?.addEventListener("htmx:before:request", (event) => {
  if (event.target === app) event.detail.ctx.fetch = fetchQuietly;
});
app?.addEventListener("htmx:after:swap", markActs);
app?.addEventListener("htmx:after:swap", (event) => followLanguage(event.detail.ctx.text));

// --- Clocks tick here between two events; their widths do not change (tabular numbers).

function clock(seconds) {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
setInterval(() => {
  if (isLost() || document.hidden) return;
  for (const each of document.querySelectorAll("[data-since]")) {
    if (each.dataset.since) each.textContent = clock(Math.max(0, Math.floor(Date.now() / 1000 - Number(each.dataset.since))));
  }
}, 1000);

// --- What is typed is kept here, so no tab of its own is needed for another language.
document.addEventListener("click", (event) => event.target.closest("[formtarget]")?.removeAttribute("formtarget"));

// --- Theme, at once and kept in a cookie that the server reads.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-toggle]")) return;
  event.preventDefault();
  const isDark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  html.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `aiflow_theme=${html.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
});

// --- A phone's menu goes when it was used, and when somebody wants out of it.
const drawer = () => document.getElementById("drawer");
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !drawer()?.open || document.querySelector("dialog[open]")) return;
  drawer().open = false;
  drawer().querySelector("summary").focus();
});
document.addEventListener("click", (event) => event.target.closest("#drawer a") && (drawer().open = false));

startKeeping();
startForms();
startDialogs();
startKeys();
connect(change);
