// The keyboard (DESIGN §7). Links say by `data-key` which keys lead to them; nothing destructive has a single key.
import { openPalette } from "./palette.js";

// Enter that ends a Japanese conversion is no Enter; Safari tells that only by its old number.
export const isComposing = (event) => event.isComposing || event.keyCode === 229;
const isTyping = (event) => isComposing(event) || event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
const ROWS = ".item, .grid tbody tr:not(.group), .events > li, .line-row, .place";
const rows = () => [...document.querySelectorAll(`#main :is(${ROWS})`)];
const marked = (row) => row.getAttribute("aria-current") === "true";

function move(by) {
  const all = rows();
  if (!all.length) return;
  const focused = all.findIndex((row) => row.contains(document.activeElement));
  const at = focused >= 0 ? focused : all.findIndex(marked);
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  for (const row of all) row.removeAttribute("aria-current");
  to.setAttribute("aria-current", "true");
  to.scrollIntoView({ block: "nearest" });
  const target = to.querySelector("a, button, summary") ?? to;
  if (target === to) to.tabIndex = -1;
  target.focus({ preventScroll: true });
}

function current() {
  const all = rows();
  return all.find((row) => row.contains(document.activeElement)) ?? all.find(marked) ?? document.querySelector(".reason");
}

// Up: a run's request, a request's list, the first page.
function up() {
  const [, request] = location.pathname.match(/^(\/requests\/[^/]+)\/./) ?? [];
  if (location.pathname === "/") return;
  location.assign(request ?? (location.pathname.startsWith("/requests/") ? "/backlog" : "/"));
}

function choose(event) {
  const choice = current()?.querySelectorAll("[name=choice]")[Number(event.key) - 1];
  choice?.click();
  choice?.focus();
}

function write(event) {
  const field = (current() ?? document).querySelector("[name=answer]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function search(event) {
  const field = document.querySelector("#main input[type=search]");
  event.preventDefault();
  field ? field.focus() : openPalette();
}

// Ctrl+Enter does what is recommended, in the form it is pressed in or in the current item.
function recommend(event) {
  const place = event.target.closest?.("form[data-act]") ?? (document.querySelector("dialog[open]") ? null : current());
  const button = place?.querySelector(".btn--go");
  event.preventDefault();
  if (button) button.click(); // be it one that sends its form, or one that asks first
  else if (place?.matches("form")) place.requestSubmit();
}

const DOES = { j: () => move(1), k: () => move(-1), u: up, a: write, "/": search };

export function startKeys() {
  let before = "";
  let pressedAt = 0;
  document.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key.toLowerCase() === "k" && !event.altKey) {
      event.preventDefault();
      return openPalette();
    }
    if (isCommand && event.key === "Enter") return recommend(event);
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && isTyping(event)) return event.target.blur();
    if (isTyping(event) || isCommand || event.altKey) return;
    const two = Date.now() - pressedAt < 1500 ? `${before} ${event.key}` : "";
    [before, pressedAt] = [event.key, Date.now()];
    const keyed = (keys) => keys && document.querySelector(`[data-key="${CSS.escape(keys)}"]`);
    const link = keyed(two) || keyed(event.key);
    if (link) { event.preventDefault(); before = ""; return link.click(); }
    if (two.startsWith("g ")) return; // no such page
    if (Object.hasOwn(DOES, event.key)) DOES[event.key](event);
    else if (/^[1-9]$/.test(event.key)) choose(event);
  });
}
