// Moments by the reader's clock: what the server said by its own is said again by the browser's before anybody sees it.
// The words are the catalogue's, which the page brings along; without a script the server's stay.

const WORDS = "[data-time-words]";
const MOMENT = /\{(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[+-]\d\d:\d\d|Z))\}/g;
const two = (n) => String(n).padStart(2, "0");
const fill = (words, facts) => words.replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);
const clock = (at) => `${at.getHours()}:${two(at.getMinutes())}`;

function offset(at) {
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

function exact(at) {
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}${offset(at)}`;
}

function day(at, words) {
  return fill(words.day, { weekday: words.weekdays[(at.getDay() + 6) % 7], month: words.months[at.getMonth()], day: at.getDate() });
}

function lately(at, words) {
  const now = new Date();
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  const near = { [now.toDateString()]: words.today, [yesterday.toDateString()]: words.yesterday }[at.toDateString()];
  return near ? fill(near, { clock: clock(at) }) : FORMS.full(at, words);
}

// How a moment is said, by `data-form`; how long ago it was is the same on every clock.
const FORMS = {
  ago: () => null,
  clock,
  day,
  full: (at, words) => fill(words.moment, { day: day(at, words), clock: clock(at) }),
  lately,
};

function set(node, text) {
  if (text !== null && node.textContent !== text) node.textContent = text;
}

/** Say every moment in a part of the page, or in one that is about to be shown, by the browser's clock. */
export function tellTimes(root = document) {
  const words = JSON.parse((root.querySelector(WORDS) ?? document.querySelector(WORDS))?.dataset.timeWords ?? "null");
  if (!words) return;
  for (const node of root.querySelectorAll("[data-form]")) {
    const at = new Date(node.dateTime ?? node.dataset.at);
    set(node, FORMS[node.dataset.form](at, words));
    if (node.title) node.title = exact(at);
  }
  for (const node of root.querySelectorAll("[data-moments]")) {
    const said = node.dataset.moments.replace(MOMENT, (all, at) => clock(new Date(at)));
    if (node.hasAttribute("aria-label")) node.setAttribute("aria-label", said);
    else set(node, said);
  }
  for (const node of root.querySelectorAll("[data-zone]")) set(node, `UTC${offset(new Date())}`);
  for (const box of root.querySelectorAll("[data-days]")) headDays(box, words);
}

// Lines by day: a day begins where the reader's clock says so.
function headDays(box, words) {
  const groups = [];
  for (const line of box.querySelectorAll("li")) {
    const time = line.querySelector("time");
    const said = time ? day(new Date(time.dateTime), words) : box.dataset.days;
    if (groups.at(-1)?.said !== said) groups.push({ said, lines: [] });
    groups.at(-1).lines.push(line);
  }
  const [heads, lists] = [[...box.querySelectorAll("h2")], [...box.querySelectorAll("ol")]];
  const isSo = ({ said, lines }, n) => heads[n].textContent === said && lists[n].children.length === lines.length;
  if (groups.length === heads.length && groups.every(isSo)) return;
  const grouped = groups.flatMap(({ said, lines }, n) => {
    const [head, list] = [heads[n] ?? heads[0].cloneNode(), lists[n] ?? lists[0].cloneNode()];
    head.textContent = said;
    list.replaceChildren(...lines);
    return [head, list];
  });
  box.replaceChildren(...grouped);
}

// A time of day that was typed is meant by the same clock: the server is told the moment.
document.addEventListener("formdata", (event) => {
  for (const field of event.target.querySelectorAll("input[type=time][data-moment]")) {
    if (!field.value) continue;
    const [hours, minutes] = field.value.split(":");
    const at = new Date();
    at.setHours(hours, minutes, 0, 0);
    if (at <= new Date()) at.setDate(at.getDate() + 1);
    event.formData.set(field.dataset.moment, at.toISOString());
  }
});

document.getElementById("app")?.addEventListener("htmx:before:swap", (event) => {
  for (const task of event.detail.tasks ?? []) if (task.fragment?.querySelectorAll) tellTimes(task.fragment);
});
tellTimes();
