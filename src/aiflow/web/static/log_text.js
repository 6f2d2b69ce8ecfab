// A log as lines, of which only those around the reader are kept: the server knows the rest, and finds words in it.
import { ansiLine } from "./ansi.js";
import { readHeading } from "./log_lines.js";

const MOST_KEPT = 3000; // lines
const AT_ONCE = 400;

/** A line's text without colours, as people read it. */
export function plain(line) {
  return /[\u001b\u009b\r]/.test(line) ? ansiLine(line).spans.map((span) => span.text).join("") : line;
}

export class LogText {
  total = 0;
  failures = 0; // how many
  failure = null; // the line where a reader wants to begin
  headings = 0;
  isHeaded = false; // its first line is a heading
  mayGrow = true;
  wasCut = false;
  words = ""; // that are looked for
  hits = 0;
  #kept = new Map(); // by line: `{ text, second, under }`
  #isOpen = false; // the last line has no end yet
  #turn = null;
  #reading = null;

  constructor(address) {
    this.address = address;
  }

  /** Return a line that is kept: its text, when it was written (null: not known, undefined: of no line), its heading. */
  line(index) {
    return this.#kept.get(index);
  }

  /** Read how it stands, and so many lines at the end. Calls at the same time share one reading. */
  more(count) {
    this.#reading ??= this.#ask({ first: -Math.max(1, count), count }).finally(() => (this.#reading = null));
    return this.#reading;
  }

  /** Read those of some lines that are not kept; returns whether any came. */
  async bring(first, end) {
    while (first < end && this.#kept.has(first)) first++;
    while (end > first && this.#kept.has(end - 1)) end--;
    if (first === end) return false;
    const part = await this.#ask({ first, count: Math.min(end - first, AT_ONCE) });
    this.#forgetFar(first, end);
    return part.lines.length > 0;
  }

  /** Return a line as long as it is. */
  async whole(index) {
    const part = await this.#get("", { first: index, count: 1, whole: true });
    return plain(part.lines[0] ?? "");
  }

  /** Return `{ total, at, line }` of what is found: by its place among all, or behind a line; failures without words. */
  find(asked) {
    return this.#get("/find", asked);
  }

  async #ask(asked) {
    const { words } = this;
    const part = await this.#get("", words ? { ...asked, words } : asked);
    const wasCut = this.#turn !== null && (part.turn !== this.#turn || part.total < this.total);
    if (wasCut) this.wasCut = true;
    if (wasCut) this.#kept.clear();
    else if (this.#isOpen) this.#kept.delete(this.total - 1); // it may have grown
    this.#turn = part.turn;
    this.#isOpen = part.is_open;
    this.total = part.total;
    this.failures = part.failures;
    this.failure = part.failure;
    this.headings = part.headings;
    this.isHeaded = part.is_headed;
    this.mayGrow = part.may_grow;
    if (words && words === this.words) this.hits = part.hits;
    this.#keep(part);
    return part;
  }

  #keep({ first, lines, times, heading }) {
    let under = heading && { at: heading[0], text: heading[1] };
    let second = times ? null : undefined;
    let next = 0;
    lines.forEach((text, at) => {
      while (next < (times?.length ?? 0) && times[next][0] <= at) second = times[next++][1];
      if (text.includes("=== ") && readHeading(plain(text))) under = { at: first + at, text: plain(text) };
      this.#kept.set(first + at, { text, second, under });
    });
    if (this.#kept.size > MOST_KEPT) this.#forgetFar(first, first + lines.length);
  }

  #forgetFar(first, end) {
    if (this.#kept.size <= MOST_KEPT) return;
    for (const index of this.#kept.keys()) if (index < first - MOST_KEPT / 3 || index > end + MOST_KEPT / 3) this.#kept.delete(index);
  }

  async #get(more, asked) {
    const answer = await fetch(`${this.address}${more}?${new URLSearchParams(asked)}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }
}
