// What a reader has open, types in or is about to press stays as it is while the rest of the page changes.
import { forget, isTyped, typedIn } from "./drafts.js";
import { announce } from "./said.js";
import { tellTimes } from "./times.js";

const app = document.getElementById("app");
const LISTS = "[data-keep-order][id]";
// A receipt can be read for this long, even if nobody points at it.
const READ = 4000;
// It waits no longer for a pointer or focus to leave: after a tap, a finger counts as there until the next one.
const LONGEST = 30000;
const same = (fragment, element) => fragment.querySelector(`#${CSS.escape(element.id)}`);

// --- An item that is being sent, or was: the page changes around it, and no other button slides under the finger.

export function hold(item) {
  item.style.minHeight = `${item.offsetHeight}px`;
  item.dataset.held = "";
  item.setAttribute("hx-morph-skip", "");
}
export function letGo(item) {
  item.style.minHeight = "";
  delete item.dataset.held;
  item.removeAttribute("hx-morph-skip");
}

// A receipt in the place of an item; it goes when pointer and focus have left the list, or after a while.
export function settle(item, told, mayGo = () => true) {
  hold(item);
  const hadFocus = item.contains(document.activeElement);
  item.replaceChildren(told);
  announce(told.textContent);
  const next = told.querySelector("textarea") ?? told;
  if (next === told) told.tabIndex = -1;
  if (hadFocus) next.focus({ preventScroll: true });
  const list = item.parentElement;
  const since = Date.now();
  const looking = setInterval(() => {
    if (!item.isConnected) return clearInterval(looking);
    const isWatched = list.matches(":hover") || list.querySelector(":focus-visible");
    const shown = Date.now() - since;
    if (shown < READ || !mayGo() || (isWatched && shown < LONGEST)) return;
    clearInterval(looking);
    letGo(item);
    item.dataset.over = "";
    document.body.dispatchEvent(new Event("aiflow:done"));
  }, 500);
}

// Somebody else did it: who, and what was typed here stays to be copied.
async function takeOver(item) {
  hold(item);
  const draft = typedIn(item);
  const ask = await fetch(item.dataset.taken, { headers: { "HX-Request": "true" } }).catch(() => null);
  const box = document.createElement("template");
  if (ask?.status === 200 && !ask.redirected) box.innerHTML = await ask.text(); // the server's own part
  tellTimes(box.content);
  const told = box.content.firstElementChild;
  if (!told) return letGo(item); // it only waits elsewhere now
  const kept = told.querySelector(".kept");
  if (!draft) { kept.remove(); return settle(item, told); }
  kept.hidden = false;
  kept.querySelector("textarea").value = draft;
  let isRead = false;
  kept.querySelector("[data-dismiss]").addEventListener("click", () => { isRead = true; forget(item); kept.remove(); });
  kept.querySelector("textarea").dataset.draft = item.querySelector("[data-draft]").dataset.draft;
  settle(item, told, () => isRead);
}

// --- What is carried over into what comes: it takes the place of its namesake there.

function holdPlace(element) {
  const place = document.createElement(element.localName);
  place.id = element.id;
  return place;
}

// Gone, or no longer asking what somebody types an answer to.
function isTaken(item, now) {
  if (!("taken" in item.dataset) || "held" in item.dataset || "over" in item.dataset) return false;
  const asks = (field) => now.querySelector(`[data-draft="${CSS.escape(field.dataset.draft)}"]`);
  return !now || [...item.querySelectorAll("[data-draft]")].some((field) => field.value.trim() && !asks(field));
}

// Those that are there keep their order, what is new comes behind them.
function keepOrder(fragment) {
  for (const list of app.querySelectorAll(LISTS)) {
    const next = same(fragment, list);
    if (!next) continue;
    const known = new Map([...next.children].map((each) => [each.id, each]));
    const stay = [];
    for (const each of list.children) {
      if (!each.id) continue;
      if (isTaken(each, known.get(each.id))) takeOver(each);
      const now = known.get(each.id) ?? ("held" in each.dataset ? holdPlace(each) : null);
      if (now) stay.push(now);
    }
    for (const each of known.values()) if (!same(list, each)) each.classList.add("came");
    next.prepend(...stay);
  }
}

// What a form was refused with stays above it, or on top of the page if the form has gone.
function keepNotices(fragment) {
  for (const notice of app.querySelectorAll(".notice[data-of]")) {
    const item = notice.closest("[data-item]");
    const around = item ? same(fragment, item) : fragment;
    const form = around?.querySelector(`form[action="${CSS.escape(notice.dataset.of)}"]`);
    if (item && "held" in item.dataset) continue;
    const own = notice.closest("form");
    if (own?.hasAttribute("hx-morph-skip")) continue; // it is in a form that stays as it is
    if (form && own) form.prepend(holdPlace(notice));
    else if (form) noticePlace(form).before(holdPlace(notice));
    else fragment.querySelector("#main")?.prepend(holdPlace(notice));
  }
}
export const noticePlace = (form) => form.closest(".notice") ?? form.closest(".scroller, .btns, .ways") ?? form;

function carryOver(fragment) {
  for (const each of app.querySelectorAll("details[id]")) same(fragment, each)?.toggleAttribute("open", each.open);
  for (const each of app.querySelectorAll("[id][aria-current='true']:is(li, tr)")) same(fragment, each)?.setAttribute("aria-current", "true");
  // A form in which something was typed or chosen stays as it is; any other says what is true by now.
  for (const form of app.querySelectorAll("form[data-while-typed]")) form.toggleAttribute("hx-morph-skip", isTyped(form));
  keepOrder(fragment);
  keepNotices(fragment);
}

export function startKeeping() {
  if (!app) return;
  const lead = () => document.getElementById("h-lead")?.textContent;
  let before = lead();
  app.addEventListener("htmx:before:swap", (event) => {
    for (const task of event.detail.tasks ?? []) if (task.fragment?.querySelector) carryOver(task.fragment);
  });
  app.addEventListener("htmx:after:swap", () => {
    if (lead() !== before) announce(lead());
    before = lead();
  });
}
