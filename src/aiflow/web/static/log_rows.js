// One line of a log as a row of fixed height: number, time, text with a terminal's colours, what was found marked.
import { ansiNodes } from "./ansi.js";
import { viewLine } from "./log_lines.js";

export const MOST_CHARACTERS = 1000;

const fill = (words, facts) => words.replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);
export { fill };

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

let clock = null;

/** Make the time of day in the browser's zone. */
function makeTime(name, moment) {
  const { lang } = document.documentElement;
  clock ??= new Intl.DateTimeFormat(lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const time = make("time", name, clock.format(moment));
  time.dateTime = moment.toISOString();
  return time;
}

/** Draw a line; `second` is when it was written (null: not known, undefined: of no line), `found` is searched for. */
export function drawRow(line, index, words, second, found) {
  const cut = line.length > MOST_CHARACTERS;
  // A code of which only the beginning is left is none.
  const view = viewLine(cut ? line.slice(0, MOST_CHARACTERS).replace(/\u001b\[[0-9;:]*$/, "") : line, index + 1);
  if (view.heading) return drawHeading(view.heading, words, index);
  const row = make("div", `v ${view.kind}`);
  const number = make("a", "no", String(index + 1));
  number.href = `#L${index + 1}`;
  number.setAttribute("aria-label", fill(words.line, { n: index + 1 }));
  const text = make("span", "tx");
  text.append(ansiNodes(found ? marked(view.spans, found) : view.spans));
  if (second === undefined) row.append(number, text);
  else row.append(number, second === null ? make("span", "when") : makeTime("when", new Date(second * 1000)), text);
  if (cut) {
    const all = make("button", "btn btn--sm all", words.show_all);
    all.type = "button";
    all.dataset.whole = String(index);
    row.append(all);
  }
  return row;
}

/** Split spans where something was found, so that it can be marked. */
function marked(spans, found) {
  const text = spans.map((span) => span.text).join("").toLowerCase();
  const places = [];
  for (let at = text.indexOf(found); at >= 0; at = text.indexOf(found, at + found.length)) places.push([at, at + found.length]);
  const made = [];
  let start = 0;
  for (const span of spans) {
    let at = 0;
    for (const [from, to] of places) {
      const [begin, end] = [Math.max(from - start, at), Math.min(to - start, span.text.length)];
      if (begin >= end) continue;
      if (begin > at) made.push({ ...span, text: span.text.slice(at, begin) });
      made.push({ text: span.text.slice(begin, end), classes: `${span.classes ?? ""} hit`.trim() });
      at = end;
    }
    if (at < span.text.length) made.push({ ...span, text: span.text.slice(at) });
    start += span.text.length;
  }
  return made;
}

/** Draw a heading: whose attempt it is, or which command, and when it began. */
export function drawHeading(heading, words, index) {
  const row = make("div", "v sep");
  const strong = {
    role: () => [heading.step, heading.role].filter(Boolean).join(" "),
    tests: () => fill(words.tests, { name: heading.name }),
    set_up: () => words.set_up,
    acceptance: () => fill(words.acceptance, { name: heading.name.replace(/^(.*) tests$/, (_, name) => fill(words.tests, { name })) }),
    commit: () => words.commit,
    push: () => words.push,
  }[heading.what];
  row.append(make("b", "", strong ? strong() : heading.title));
  if (heading.attempt) row.append(make("span", "muted", fill(words.attempt, { n: heading.attempt })));
  if (heading.command) row.append(make("span", "mono muted", heading.command));
  const moment = new Date(heading.time);
  if (!Number.isNaN(moment.getTime())) { // a program may print what looks like a heading
    const time = makeTime("d", moment);
    time.title = heading.time;
    row.append(time);
  }
  row.dataset.index = String(index);
  return row;
}
