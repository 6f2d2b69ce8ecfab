// A log as lines: read by byte offset, history first and then what is new; what is a heading, what failed, what was found.
// Long logs are taken in slices, so that the page stays awake.
import { ansiLine } from "./ansi.js";
import { lineKind } from "./log_lines.js";

const SLICE = 2000;
const MOST_BYTES = 32_000_000; // of a longer one the end
const awake = () => new Promise((go) => setTimeout(go));

/** A line's text without colours, as people read it. */
export function plain(line) {
  return /[\u001b\u009b\r]/.test(line) ? ansiLine(line).spans.map((span) => span.text).join("") : line;
}

export class LogText {
  lines = [];
  failures = []; // indexes, in order
  headings = [];
  times = []; // from which line on which second holds, in order
  offset = 0;
  size = 0;
  leftOut = 0; // bytes at the start that are not shown
  mayGrow = true;
  wasCut = false;
  #isOpen = false; // the last line has no end yet
  #reading = null;

  constructor(address) {
    this.address = address;
  }

  /** Read everything that is there and not read yet; `tell` after each part. Calls at the same time share one reading. */
  more(tell) {
    this.#reading ??= this.#read(tell).finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #read(tell) {
    for (;;) {
      const part = await this.#part();
      if (part.was_cut) this.#forget();
      if (part.was_cut) this.wasCut = true;
      this.mayGrow = part.may_grow;
      this.size = part.size;
      if (this.offset === 0 && part.size > MOST_BYTES) {
        this.leftOut = this.offset = part.size - MOST_BYTES;
        continue;
      }
      const isFirst = this.leftOut > 0 && this.lines.length === 0;
      this.offset = part.next_offset;
      // The first line of what is left of a long log has lost its start.
      await this.#take(isFirst ? part.text.slice(part.text.indexOf("\n") + 1) : part.text, part.times, isFirst ? 1 : 0);
      tell?.(this);
      if (part.next_offset >= part.size || !part.text) return;
    }
  }

  async #part() {
    const answer = await fetch(`${this.address}?offset=${this.offset}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  #forget() {
    this.lines = [];
    this.failures = [];
    this.headings = [];
    this.times = [];
    this.#isOpen = false;
    this.leftOut = 0;
  }

  async #take(text, times, missing) {
    if (!text) return;
    if (this.#isOpen) text = this.#pop() + text;
    for (const [line, second] of times) this.times.push([this.lines.length + Math.max(0, line - missing), second]);
    const lines = text.split("\n");
    this.#isOpen = lines.at(-1) !== "";
    if (!this.#isOpen) lines.pop();
    for (let at = 0; at < lines.length; at += SLICE) {
      for (const line of lines.slice(at, at + SLICE)) this.#add(line);
      if (at + SLICE < lines.length) await awake();
    }
  }

  #pop() {
    const at = this.lines.length - 1;
    if (this.failures.at(-1) === at) this.failures.pop();
    if (this.headings.at(-1) === at) this.headings.pop();
    return this.lines.pop();
  }

  #add(line) {
    const kind = lineKind(plain(line.slice(0, 4000)));
    if (kind === "bad") this.failures.push(this.lines.length);
    else if (kind === "sep") this.headings.push(this.lines.length);
    this.lines.push(line);
  }

  /** Return the line where a reader wants to begin: the first that failed in the last part that has one. */
  failure() {
    const last = this.failures.at(-1);
    if (last === undefined) return null;
    const start = this.headings.findLast((at) => at <= last) ?? 0;
    return this.failures.find((at) => at >= start);
  }

  /** Return the heading that a line stands under. */
  headingOf(index) {
    return lastUpTo(this.headings, index, (at) => at) ?? null;
  }

  /** Return the second in which a line was written; null if that was not kept. */
  timeOf(index) {
    return lastUpTo(this.times, index, ([line]) => line)?.[1] ?? null;
  }
}

/** Return the last of a list in order that is not behind a line. */
function lastUpTo(list, index, lineOf) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lineOf(list[middle]) <= index) low = middle + 1;
    else high = middle;
  }
  return list[low - 1];
}

/** What is searched for: every line that has it, counted truly, also in lines that come later. */
export class Search {
  hits = [];
  #seen = 0;
  #turn = 0;

  constructor(words) {
    this.words = words.toLowerCase();
  }

  /** Look through the lines that were not looked through yet; null if another call took over. */
  async through(text) {
    const turn = ++this.#turn;
    // The last line may still grow: it is looked at again.
    if (this.hits.at(-1) === this.#seen - 1) this.hits.pop();
    for (let at = Math.max(0, this.#seen - 1); at < text.lines.length; at += SLICE) {
      const end = Math.min(text.lines.length, at + SLICE);
      for (let index = at; index < end; index++) if (plain(text.lines[index]).toLowerCase().includes(this.words)) this.hits.push(index);
      this.#seen = end;
      await awake();
      if (turn !== this.#turn) return null;
    }
    return this.hits;
  }
}
