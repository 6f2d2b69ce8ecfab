// The list: search as it is typed, what was chosen stays chosen, and rows do not move under the reader.
import { announce } from "./said.js";

const app = document.getElementById("app");
const WAIT = 150;
const field = () => document.getElementById("q");

// --- Search: the address says what is shown, and the page is fetched again by it.

function address() {
  const form = document.getElementById("filters");
  const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return asked.size ? `/backlog?${asked}` : "/backlog";
}

let timer = null;
function search() {
  clearTimeout(timer);
  const to = address();
  if (to === here()) return;
  history.replaceState(null, "", to);
  app.setAttribute("hx-get", to);
  document.body.dispatchEvent(new Event("aiflow:change"));
}
document.addEventListener("input", (event) => {
  if (event.target !== field() || event.isComposing) return;
  clearTimeout(timer);
  timer = setTimeout(search, WAIT);
});
document.addEventListener("compositionend", (event) => event.target === field() && (timer = setTimeout(search, WAIT)));
document.addEventListener("change", (event) => event.target.closest?.("#filters select") && search());
document.addEventListener("submit", (event) => {
  if (event.target.id !== "filters") return;
  event.preventDefault();
  search();
});

// --- The order: what the reader did themselves is shown at once, what happens by itself as a line above the list.

let isMine = false;
const here = () => location.pathname + location.search;
let shown = here(); // what the rows are an answer to
document.body.addEventListener("aiflow:done", () => (isMine = true));
const keyed = (at) => [...at.querySelectorAll("#rows > tr")].map((row) => row.id);

function keepOrder(fragment) {
  const now = document.getElementById("rows");
  const next = fragment.querySelector("#rows");
  if (!now || !next) return;
  // An answer to what was asked since then; one that was on its way before that is none.
  const answers = fragment.querySelector("#moved a")?.getAttribute("href");
  if (answers !== shown && answers === here()) {
    shown = answers;
    isMine = true;
  }
  if (isMine) return;
  const [before, after] = [keyed(app), keyed(fragment)];
  if (before.join() === after.join()) return;
  const rows = new Map([...next.children].map((row) => [row.id, row]));
  next.replaceChildren(...[...now.children].map((row) => rows.get(row.id) ?? row.cloneNode(true)));
  const moved = document.getElementById("moved");
  if (moved.hidden) announce(moved.firstChild.textContent);
  moved.hidden = false;
}

document.body.addEventListener("htmx:before:swap", (event) => {
  for (const task of event.detail.tasks ?? []) {
    const fragment = task.fragment ?? task.content;
    if (!fragment?.querySelector) continue;
    keepOrder(fragment);
    if (isMine) document.getElementById("moved")?.setAttribute("hidden", "");
    // What is typed or chosen by now is newer than what was asked for.
    const typed = fragment.querySelector("#q");
    if (typed && field()) typed.setAttribute("value", field().value);
    for (const box of app.querySelectorAll("#rows input[name=request_id]:checked")) {
      fragment.querySelector(`#rows input[value="${CSS.escape(box.value)}"]`)?.setAttribute("checked", "");
    }
  }
});
document.body.addEventListener("htmx:after:swap", () => (isMine = false));
document.getElementById("app").addEventListener("click", (event) => {
  if (!event.target.closest("#moved a")) return;
  event.preventDefault();
  isMine = true;
  document.body.dispatchEvent(new Event("aiflow:change"));
});
