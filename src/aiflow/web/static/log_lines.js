// What a line of a log is: the browser's half of web/text/log_lines.py, for lines that come in live.
import { ansiLine } from "./ansi.js";
import rules from "./text_rules.js";

const MOST_CHARACTERS = 4000;
const whole = (list) => list.map((each) => `(?:${each.pattern})`).join("|");
const HEADING = new RegExp(rules.heading, "u");
const KINDS = [
  ["sep", HEADING],
  ["bad", new RegExp(whole(rules.failing), "u")],
  ["sh", new RegExp(rules.command, "u")],
  ["ok", new RegExp(whole(rules.passing), "u")],
];
const TITLES = rules.titles.map(({ what, pattern, parts }) => ({ what, parts, pattern: new RegExp(pattern, "u") }));

/** Return one line as it is shown: `{ number, kind, text, spans, heading, leftOut }`; `kind` is the class that draws it. */
export function viewLine(line, number) {
  const characters = line.length > MOST_CHARACTERS ? Array.from(line) : null;
  const shown = characters ? characters.slice(0, MOST_CHARACTERS).join("") : line;
  const { spans } = ansiLine(shown);
  const text = spans.map((span) => span.text).join("");
  const leftOut = characters ? Math.max(0, characters.length - MOST_CHARACTERS) : 0;
  return { number, kind: lineKind(text), text, spans, heading: readHeading(text), leftOut };
}

/** Say what a line is, by its text without colours. */
export function lineKind(text) {
  return KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? "plain";
}

/** Read a heading: `{ what, title, time, …parts }`; null if the line is not one. */
export function readHeading(text) {
  const match = HEADING.exec(text);
  if (!match) return null;
  const [, time, title] = match;
  for (const { what, pattern, parts } of TITLES) {
    const found = pattern.exec(title);
    if (!found) continue;
    const told = Object.fromEntries(parts.map((part, at) => [part, found[at + 1] ?? null]));
    if (told.attempt) told.attempt = Number(told.attempt);
    return { what, title, time, ...told };
  }
  return { what: "other", title, time };
}
