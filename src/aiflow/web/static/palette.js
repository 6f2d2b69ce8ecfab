// The palette (Ctrl+K): pages, requests and actions by a few letters. What it offers besides requests stands in the layout.
import { close, show } from "./dialogs.js";
import { isLost } from "./connection.js";

const AT_MOST = 8;
const template = document.getElementById("palette");
let requests = null;

// All requests, page by page; `tell` gets what is there so far.
async function load(tell) {
  const all = [];
  for (let after = ""; after !== null && !isLost(); ) {
    const answer = await fetch(`/api/requests?all=true&limit=500${after && `&after=${encodeURIComponent(after)}`}`).catch(() => null);
    if (!answer?.ok) return;
    const told = await answer.json();
    all.push(...told.requests.map((each) => ({ words: each.title, id: each.request_id, href: `/requests/${encodeURIComponent(each.request_id)}` })));
    after = told.next_after ?? null;
    if (!tell(all)) return;
  }
}

// Pages and actions that make sense now: an action can name what must be there, or must not.
function offers() {
  const links = [...template.content.querySelectorAll("[data-offers] > *")];
  const isNow = ({ dataset: { when, unless } }) => (!when || document.querySelector(when)) && (!unless || !document.querySelector(unless));
  return links.filter(isNow).map((link) => ({ words: link.textContent, kind: link.dataset.kind, press: link.dataset.press, href: link.getAttribute("href"), isDialog: "dialog" in link.dataset }));
}

function matches(all, asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ words: name, id = "" }) => words.every((word) => `${id} ${name}`.toLowerCase().includes(word));
  const first = ({ id = "", words: name }) => (id.toLowerCase().startsWith(words[0] ?? "") || name.toLowerCase().startsWith(words[0] ?? "") ? 0 : 1);
  return all.filter(fits).sort((one, other) => first(one) - first(other));
}

function draw(list, found, kinds) {
  list.replaceChildren(...found.map((each, at) => {
    const row = document.createElement("li");
    row.role = "option";
    row.id = `offer-${at}`;
    const [id, words, kind] = ["span", "span", "span"].map((name) => document.createElement(name));
    id.className = "id";
    id.textContent = each.id ?? "";
    words.className = "trunc";
    words.textContent = each.words;
    kind.className = "muted";
    kind.textContent = kinds[each.kind ?? "request"];
    row.append(...(each.id ? [id] : []), words, kind);
    row.offer = each;
    return row;
  }));
}

function go(offer) {
  if (!offer) return;
  close();
  if (offer.press) return document.querySelector(offer.press)?.click();
  const link = document.createElement("a");
  link.href = offer.href;
  if (offer.isDialog) link.dataset.dialog = "";
  link.hidden = true;
  document.getElementById("toasts").append(link); // pressed as any link is
  link.click();
  link.remove();
}

export async function openPalette() {
  if (!template || document.querySelector("dialog[open] .palette")) return;
  show(template.content.cloneNode(true));
  const box = document.querySelector("dialog .palette");
  const [field, list, none] = [box.querySelector("input"), box.querySelector("[role=listbox]"), box.querySelector("[data-none]")];
  const mark = (row) => {
    for (const each of list.children) each.setAttribute("aria-selected", String(each === row));
    row ? field.setAttribute("aria-activedescendant", row.id) : field.removeAttribute("aria-activedescendant");
    row?.scrollIntoView({ block: "nearest" });
  };
  const look = () => {
    const [was, words] = [now()?.offer, field.value];
    const asked = field.value.trim();
    draw(list, [...matches(offers(), asked), ...(asked ? matches(requests ?? [], asked).slice(0, AT_MOST) : [])], box.dataset);
    none.hidden = list.children.length > 0;
    const stays = words === lookedFor && [...list.children].find(({ offer }) => offer.words === was?.words && offer.href === was?.href);
    lookedFor = words;
    mark(stays || list.firstElementChild); // what is chosen stays so when requests come
  };
  let lookedFor = null;
  const now = () => list.querySelector("[aria-selected=true]");
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const to = { ArrowDown: now()?.nextElementSibling ?? list.firstElementChild, ArrowUp: now()?.previousElementSibling ?? list.lastElementChild }[event.key];
    if (to) mark(to);
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) go(now()?.offer);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => go(event.target.closest("[role=option]")?.offer));
  look();
  await load((all) => {
    requests = all;
    if (field.isConnected) look();
    return field.isConnected;
  });
}
