// The log of a run: history first, then live; only the rows in view exist, and only the lines around them are kept. Opens at the failure, or at the end while it
// grows; follows until the reader scrolls up. Everything in it is text.
import { readHeading } from "./log_lines.js";
import { drawHeading, drawRow, fill } from "./log_rows.js";
import { LogText } from "./log_text.js";

const AROUND = 12; // rows beyond the edges
const AHEAD = 100; // rows beyond those that are fetched with them
const MOST_SHOWN = 1_000_000; // lines: no browser draws a box that is higher
const PAUSE = 200; // milliseconds between two readings of what is new
const tool = (name) => document.getElementById(`log-${name}`);
let viewer = null;

class Viewer {
  #rows = new Map();
  #search = ""; // what is looked for, in small letters
  #hit = -1;
  #mark = null; // the line that the address or the reader points at
  #isFollowing = false;
  #seen = 0;
  #height = 20;
  #set = 0;
  #hasMoved = false;
  #timer = null;
  #base = 0; // the first line that is shown
  #isBringing = false;

  constructor(box) {
    this.box = box;
    this.words = JSON.parse(box.dataset.words);
    this.text = new LogText(box.dataset.log);
  }

  async start() {
    tool("tools").hidden = false;
    tool("after").replaceChildren(); // of the step before
    await this.load();
    if (!this.space) this.#build();
    if (tool("search").value) this.search(tool("search").value);
    const line = /^#L(\d+)$/.exec(location.hash);
    if (line) this.goTo(Number(line[1]) - 1);
    else if (this.#hasMoved) this.draw();
    else if (this.text.mayGrow) this.follow(true);
    else this.goTo(this.text.failure, { isMarked: false });
    this.#tell();
  }

  /** Read what is new; what cannot be read now is tried again. */
  async load() {
    try {
      await this.text.more(this.#isFollowing || !this.space ? this.#inView() + AROUND : 0);
      if (!this.space) this.#build();
      this.#grow();
      this.say(this.text.wasCut ? this.words.again : this.#base ? fill(this.words.cut, { number: this.#base.toLocaleString() }) : "");
    } catch {
      this.say(this.words.lost);
      this.later(2000);
    }
  }

  later(pause = PAUSE) {
    this.#timer ??= setTimeout(async () => {
      this.#timer = null;
      if (!this.box.isConnected || document.hidden) return;
      await this.load();
      this.#tell();
    }, pause);
  }

  #inView() {
    return Math.ceil(this.box.clientHeight / this.#height) + AROUND;
  }

  #build() {
    this.note = document.createElement("p");
    this.note.className = "note";
    this.note.hidden = true;
    this.now = document.createElement("div");
    this.now.className = "now";
    this.space = document.createElement("div");
    this.space.className = "space";
    this.box.replaceChildren(this.note, this.now, this.space);
    this.box.classList.add("log--rows");
    this.#height = parseFloat(getComputedStyle(this.space).lineHeight) || 20;
    this.#base = Math.max(0, this.text.total - MOST_SHOWN);
    this.box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  #grow() {
    const { text } = this;
    if (text.total < this.#seen) this.#clear(); // it was cut: all of it is new
    if (text.total <= this.#base) this.#base = 0;
    this.#forgetRow(this.#seen - 1); // the last line may have grown
    this.space.style.blockSize = `${(text.total - this.#base) * this.#height}px`;
    this.now.hidden = !text.headings;
    // A heading in the first line is the one that stands above all: it is not shown twice.
    this.space.classList.toggle("tucked", text.isHeaded);
    this.space.dataset.lines = String(text.total);
    if (this.#isFollowing) this.#toEnd();
    this.draw();
    if (this.#isFollowing || !text.mayGrow) this.#seen = text.total;
  }

  #clear() {
    for (const row of this.#rows.values()) row.remove();
    this.#rows.clear();
    this.#seen = 0;
  }

  #forgetRow(index) {
    this.#rows.get(index)?.remove();
    this.#rows.delete(index);
  }

  /** Draw the rows in view; those that stay are left alone, so that a selection stays too. */
  draw() {
    const top = this.box.scrollTop - this.space.offsetTop;
    const first = Math.max(0, Math.floor(top / this.#height) - AROUND) + this.#base;
    const last = Math.min(this.text.total, this.#base + Math.ceil((top + this.box.clientHeight) / this.#height) + AROUND);
    for (const index of this.#rows.keys()) if (index < first || index >= last) this.#forgetRow(index);
    let isMissing = false;
    for (let index = first; index < last; index++) {
      if (this.#rows.has(index)) continue;
      const line = this.text.line(index);
      if (line) this.#drawLine(line, index);
      else isMissing = true;
    }
    if (isMissing) this.#bring(first, last);
    this.#drawNow(this.#base + Math.floor((top + this.now.offsetHeight) / this.#height));
  }

  #drawLine({ text, second }, index) {
    const row = drawRow(text, index, this.words, second, this.#search);
    row.style.insetBlockStart = `${(index - this.#base) * this.#height}px`;
    row.id = `L${index + 1}`;
    row.classList.toggle("at", index === this.#mark);
    this.#rows.set(index, row);
    this.space.append(row);
  }

  /** Fetch the lines in view, and some around them for whoever scrolls on; what is in view by then is drawn. */
  async #bring(first, last) {
    if (this.#isBringing) return;
    this.#isBringing = true;
    try {
      const hasCome = await this.text.bring(Math.max(0, first - AHEAD), Math.min(this.text.total, last + AHEAD));
      this.#isBringing = false;
      if (hasCome && this.box.isConnected) this.draw();
    } catch {
      this.say(this.words.lost);
      this.later(2000);
    } finally {
      this.#isBringing = false;
    }
  }

  #drawNow(index) {
    const line = this.text.line(Math.min(index, this.text.total - 1));
    if (!line) return; // it is on its way
    const at = String(line.under?.at ?? null);
    if (this.now.dataset.at === at) return;
    this.now.dataset.at = at;
    this.now.replaceChildren();
    const heading = line.under && readHeading(line.under.text);
    if (heading) this.now.append(drawHeading(heading, this.words, line.under.at));
  }

  #scrolled() {
    const isOwn = Math.abs(this.box.scrollTop - this.#set) < 2;
    if (!isOwn) {
      this.#hasMoved = true;
      const isAtEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 2 * this.#height;
      if (this.#isFollowing !== isAtEnd && this.text.mayGrow) this.follow(isAtEnd, { moves: false });
    }
    requestAnimationFrame(() => this.draw());
  }

  #to(position) {
    this.box.scrollTop = position;
    this.#set = this.box.scrollTop;
  }

  #toEnd() {
    this.#to(this.box.scrollHeight);
  }

  follow(isOn, { moves = true } = {}) {
    this.#isFollowing = isOn;
    this.#seen = this.text.total;
    if (isOn && moves) this.#toEnd();
    this.draw();
    this.#tell();
  }

  /** Bring a line into view, a third from the top. */
  goTo(index, { isMarked = true } = {}) {
    if (index === null || index === undefined || !this.text.total) return this.draw();
    index = Math.max(this.#base, Math.min(index, this.text.total - 1));
    this.#isFollowing = false;
    if (isMarked) {
      this.#rows.get(this.#mark)?.classList.remove("at");
      this.#mark = index;
      this.#rows.get(index)?.classList.add("at");
    }
    this.#to(this.space.offsetTop + (index - this.#base) * this.#height - this.box.clientHeight / 3);
    this.draw();
    this.#tell();
  }

  async nextFailure() {
    const found = await this.#find({ after: this.#mark ?? -1 });
    if (found) this.goTo(found.line);
  }

  async search(words) {
    this.#search = words.toLowerCase();
    this.text.words = words;
    this.text.hits = null; // not known yet
    this.#hit = -1;
    const seen = this.#seen;
    this.#clear();
    this.#seen = seen;
    if (this.space) this.draw();
    if (words) await this.#go(0);
    this.#tell();
  }

  async #find(asked) {
    try {
      return await this.text.find(asked);
    } catch {
      this.say(this.words.lost);
      return null;
    }
  }

  /** Go to one of what was found; an answer to what is not looked for any more is none. */
  async #go(at) {
    const { words } = this.text;
    this.#hit = at;
    const found = await this.#find({ words, at });
    if (!found || words !== this.text.words || at !== this.#hit) return;
    this.text.hits = found.total;
    this.#hit = found.at ?? -1;
    if (found.total) this.goTo(found.line);
  }

  async step(by) {
    const { hits } = this.text;
    if (!hits) return;
    await this.#go((Math.max(0, this.#hit) + by + hits) % hits);
    this.#tell();
  }

  /** Show a long line whole, in a box below: rows have one height. */
  async whole(index) {
    const line = await this.text.whole(index).catch(() => null);
    if (line === null) return this.say(this.words.lost);
    document.getElementById("log-whole")?.remove();
    const box = document.createElement("div");
    box.id = "log-whole";
    const close = document.createElement("button");
    close.className = "btn btn--sm";
    close.type = "button";
    close.textContent = this.words.close;
    close.addEventListener("click", () => box.remove());
    const text = document.createElement("pre");
    text.tabIndex = 0;
    text.textContent = line;
    box.append(close, text);
    tool("after").append(box);
    close.focus();
  }

  say(words) {
    if (!this.note || this.note.textContent === words) return;
    this.note.textContent = words;
    this.note.hidden = !words;
  }

  #tell() {
    const { words, text } = this;
    const { failures, hits } = text;
    tool("failure").hidden = !failures;
    tool("failure").firstElementChild.textContent = failures === 1 ? words.failure : fill(words.failures, { n: failures.toLocaleString() });
    tool("follow").hidden = !text.mayGrow;
    tool("follow").setAttribute("aria-pressed", String(this.#isFollowing));
    tool("hits").textContent = !this.#search || hits === null ? "" : hits ? fill(words.hits, { at: (this.#hit + 1).toLocaleString(), n: hits.toLocaleString() }) : words.none;
    for (const name of ["previous", "next"]) tool(name).hidden = !(hits > 1);
    this.#tellNew(this.#isFollowing || !text.mayGrow ? 0 : text.total - this.#seen);
    if (!text.total && this.space) this.say(words.empty);
    else if (this.note?.textContent === words.empty) this.say("");
  }

  #tellNew(count) {
    let button = document.getElementById("log-new");
    if (!count) return button?.remove();
    if (!button) {
      button = document.createElement("button");
      button.id = "log-new";
      button.className = "btn btn--sm";
      button.type = "button";
      button.addEventListener("click", () => this.follow(true));
      tool("after").prepend(button);
    }
    button.textContent = count === 1 ? this.words.new_one : fill(this.words.new, { n: count.toLocaleString() });
  }
}

function start() {
  const box = document.querySelector("[data-log]");
  if (!box || viewer?.box === box) return;
  viewer = new Viewer(box);
  viewer.start();
}

start();
document.body.addEventListener("htmx:after:swap", start);
document.body.addEventListener("aiflow:fact", ({ detail: { kind, ids } }) => {
  const { run, number } = viewer?.box.dataset ?? {};
  if (kind === "log" && ids.run_id === run && String(ids.n) === number) viewer.later();
});
document.body.addEventListener("aiflow:change", () => viewer?.text.mayGrow && viewer.later());
document.addEventListener("visibilitychange", () => document.hidden || viewer?.later());
addEventListener("hashchange", () => {
  const line = /^#L(\d+)$/.exec(location.hash);
  if (line) viewer?.goTo(Number(line[1]) - 1);
});

let typing = null;
document.addEventListener("input", ({ target }) => {
  if (target.id !== "log-search") return;
  clearTimeout(typing);
  typing = setTimeout(() => viewer?.search(target.value), 150);
});
document.addEventListener("keydown", (event) => {
  if (event.target.id !== "log-search" || event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  viewer?.step(event.shiftKey ? -1 : 1);
});
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button");
  if (!button || !viewer) return;
  if (button.dataset.whole) viewer.whole(Number(button.dataset.whole));
  else if (button.id === "log-failure") viewer.nextFailure();
  else if (button.id === "log-follow") viewer.follow(button.getAttribute("aria-pressed") !== "true");
  else if (button.id === "log-next") viewer.step(1);
  else if (button.id === "log-previous") viewer.step(-1);
});
