// A line with a terminal's colours (SGR) as spans with classes, and those as DOM nodes: the browser's half of
// web/text/ansi.py, for lines that come in live. Text is only ever set as text.
import rules from "./text_rules.js";

const UNSEEN = new RegExp(rules.unseen, "gu");
const ESCAPE = new RegExp(rules.escape, "gu");
const SETS = new Map([[1, "bold"], [2, "dim"], [3, "italic"], [4, "underline"], [7, "inverse"], [21, "underline"]]);
const ENDS = new Map([[22, ["bold", "dim"]], [23, ["italic"]], [24, ["underline"]], [27, ["inverse"]]]);
const ORDER = ["bold", "dim", "italic", "underline", "inverse"];
const CUBE = [0, 95, 135, 175, 215, 255];
const MOST_CODES = 64;

/** How text looks that no code has changed. */
export const PLAIN = Object.freeze({ colour: null, ground: null, on: Object.freeze([]) });

/** Read a line: its spans `{ text, classes }`, and the look with which the next line begins. */
export function ansiLine(line, style = PLAIN) {
  let spans = [];
  for (const piece of line.replace(/\r+$/, "").split(/\r+/)) {
    spans = []; // what a progress bar wrote over itself: the last state is shown
    style = read(piece, style, spans);
  }
  return { spans, style };
}

/** Make nodes of spans. */
export function ansiNodes(spans, document = globalThis.document) {
  const made = document.createDocumentFragment();
  for (const { text, classes } of spans) {
    const node = classes ? document.createElement("span") : document.createTextNode(text);
    if (classes) {
      node.className = classes;
      node.textContent = text;
    }
    made.append(node);
  }
  return made;
}

/** Write characters as their numbers; a byte that was no UTF-8 as that byte. */
export function spell(text) {
  return Array.from(text, (character) => {
    let code = character.codePointAt(0);
    if (code >= 0xdc80 && code <= 0xdcff) code -= 0xdc00;
    const hex = (width) => code.toString(16).padStart(width, "0");
    return code < 0x100 ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
  }).join("");
}

function read(piece, style, spans) {
  let at = 0;
  for (const match of piece.matchAll(ESCAPE)) {
    add(piece.slice(at, match.index), style, spans);
    at = match.index + match[0].length;
    const [codes, final] = match[2] ? [match[1], match[2]] : [match[3], match[4]];
    if (final === "m") style = styled(style, codes ?? "");
  }
  add(piece.slice(at), style, spans);
  return style;
}

function add(text, style, spans) {
  const classes = classesOf(style);
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    put(text.slice(at, match.index), classes, spans);
    put(spell(match[0]), "unseen", spans);
    at = match.index + match[0].length;
  }
  put(text.slice(at), classes, spans);
}

function put(text, classes, spans) {
  const last = spans.at(-1);
  if (text && last?.classes === classes) last.text += text;
  else if (text) spans.push({ text, classes });
}

function classesOf({ colour, ground, on }) {
  const names = ORDER.filter((name) => on.includes(name)).map((name) => `ansi-${name}`);
  if (colour !== null) names.push(`ansi-${colour}`);
  if (ground !== null && !on.includes("inverse")) names.push(`ansi-on-${ground}`);
  return names.join(" ");
}

function styled(style, codes) {
  if (!/^[0-9;:]*$/.test(codes)) return style;
  const number = (word) => (word.length < 5 ? Number(word) : -1);
  const given = codes.split(";").map((one) => one.split(":").map(number)).slice(0, MOST_CODES);
  while (given.length) {
    const [code, ...more] = given.shift();
    if (code === 38 || code === 48 || code === 58) style = coloured(style, code, more, given);
    else style = switched(style, code === 4 && more[0] === 0 ? 24 : code);
  }
  return style;
}

function switched(style, code) {
  const { on } = style;
  if (code === 0) return PLAIN;
  if (SETS.has(code)) return { ...style, on: [...on, SETS.get(code)] };
  if (ENDS.has(code)) return { ...style, on: on.filter((name) => !ENDS.get(code).includes(name)) };
  const tens = Math.floor(code / 10);
  const unit = code % 10;
  if (code === 39) return { ...style, colour: null };
  if (code === 49) return { ...style, ground: null };
  if (unit > 7 || code < 0) return style;
  if (tens === 3 || tens === 9) return { ...style, colour: unit + (tens === 9 ? 8 : 0) };
  if (tens === 4 || tens === 10) return { ...style, ground: unit + (tens === 10 ? 8 : 0) };
  return style;
}

function coloured(style, code, more, given) {
  if (!more.length) {
    const kind = given.length ? given.shift()[0] : 0;
    const count = { 5: 1, 2: 3 }[kind] ?? 0;
    more = [kind, ...given.splice(0, count).map((each) => each[0])];
  } else if (more[0] === 2 && more.length > 4) {
    more = [2, ...more.slice(2, 5)]; // 38:2:<colour space>:r:g:b
  }
  const found = nearestOf(more);
  if (found === null || code === 58) return style;
  return code === 38 ? { ...style, colour: found } : { ...style, ground: found };
}

function nearestOf([kind, ...parts]) {
  if (parts.some((each) => each < 0 || each > 255)) return null;
  if (kind === 5 && parts.length === 1) return of256(parts[0]);
  return kind === 2 && parts.length === 3 ? nearest(parts) : null;
}

function of256(index) {
  if (index < 16) return index;
  if (index > 231) return nearest(Array(3).fill(8 + 10 * (index - 232)));
  const cube = index - 16;
  return nearest([CUBE[Math.floor(cube / 36)], CUBE[Math.floor(cube / 6) % 6], CUBE[cube % 6]]);
}

function nearest(colour) {
  const far = rules.palette.map((one) => one.reduce((sum, part, at) => sum + (part - colour[at]) ** 2, 0));
  return far.indexOf(Math.min(...far));
}
