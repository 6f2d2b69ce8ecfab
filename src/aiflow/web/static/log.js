// The log of a run: history first, then live; only the rows in view exist. Opens at the failure, or at the end while it
// grows; follows until the reader scrolls up. Everything in it is text.
import { readHeading } from "./log_lines.js";
import { drawHeading, drawRow, fill } from "./log_rows.js";
import { LogText, Search, plain } from "./log_text.js";

const AROUND = 12; // rows beyond the edges
const PAUSE = 200; // milliseconds between two readings of what is new
const tool = (name) => document.getElementById(`log-${name}`);
let viewer = null;

class Viewer {
  #rows = new Map();
  #search = null;
  #hit = -1;
  #mark = null; // the line that the address or the reader points at
  #isFollowing = false;
  #seen = 0;
  #height = 20;
  #set = 0;
  #hasMoved = false;
  #timer = null;

  constructor(box) {
    this.box = box;
    this.words = JSON.parse(box.dataset.words);
    this.text = new LogText(box.dataset.log);
  }

  async start() {
    tool("tools").hidden = false;
    tool("after").replaceChildren(); // of the step before
    if (tool("search").value) this.search(tool("search").value);
    await this.load(() => this.#build());
    if (!this.space) this.#build();
    const line = /^#L(\d+)$/.exec(location.hash);
    if (line) this.goTo(Number(line[1]) - 1);
    else if (this.#hasMoved) this.draw();
    else if (this.text.mayGrow) this.follow(true);
    else this.goTo(this.text.failure(), { isMarked: false });
    this.#tell();
  }

  /** Read what is new; what cannot be read now is tried again. */
  async load(first) {
    try {
      await this.text.more((text) => {
        first?.();
        first = null;
        this.#grow(text);
      });
      this.say(this.text.wasCut ? this.words.again : this.text.leftOut ? fill(this.words.cut, { number: this.text.leftOut.toLocaleString() }) : "");
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
      if (this.#search) await this.#find();
      this.#tell();
    }, pause);
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
    this.box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  #grow(text) {
    if (text.lines.length < this.#seen) this.#clear(); // it was cut: all of it is new
    this.#forgetRow(this.#seen - 1); // the last line may have grown
    this.space.style.blockSize = `${text.lines.length * this.#height}px`;
    this.now.hidden = !text.headings.length;
    // A heading in the first line is the one that stands above all: it is not shown twice.
    this.space.classList.toggle("tucked", text.headings[0] === 0);
    this.space.dataset.lines = String(text.lines.length);
    if (this.#isFollowing) this.#toEnd();
    this.draw();
    if (this.#isFollowing || !this.text.mayGrow) this.#seen = text.lines.length;
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
    const first = Math.max(0, Math.floor(top / this.#height) - AROUND);
    const last = Math.min(this.text.lines.length, Math.ceil((top + this.box.clientHeight) / this.#height) + AROUND);
    for (const index of this.#rows.keys()) if (index < first || index >= last) this.#forgetRow(index);
    for (let index = first; index < last; index++) {
      if (this.#rows.has(index)) continue;
      const second = this.text.times.length ? this.text.timeOf(index) : undefined;
      const row = drawRow(this.text.lines[index], index, this.words, second, this.#search?.words);
      row.style.insetBlockStart = `${index * this.#height}px`;
      row.id = `L${index + 1}`;
      row.classList.toggle("at", index === this.#mark);
      this.#rows.set(index, row);
      this.space.append(row);
    }
    this.#drawNow(Math.floor((top + this.now.offsetHeight) / this.#height));
  }

  #drawNow(index) {
    const at = this.text.headingOf(index);
    if (this.now.dataset.at === String(at)) return;
    this.now.dataset.at = String(at);
    this.now.replaceChildren();
    const heading = at === null ? null : readHeading(plain(this.text.lines[at]));
    if (heading) this.now.append(drawHeading(heading, this.words, at));
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
    this.#seen = this.text.lines.length;
    if (isOn && moves) this.#toEnd();
    this.draw();
    this.#tell();
  }

  /** Bring a line into view, a third from the top. */
  goTo(index, { isMarked = true } = {}) {
    if (index === null || index === undefined || !this.text.lines.length) return this.draw();
    index = Math.max(0, Math.min(index, this.text.lines.length - 1));
    this.#isFollowing = false;
    if (isMarked) {
      this.#rows.get(this.#mark)?.classList.remove("at");
      this.#mark = index;
      this.#rows.get(index)?.classList.add("at");
    }
    this.#to(this.space.offsetTop + index * this.#height - this.box.clientHeight / 3);
    this.draw();
    this.#tell();
  }

  nextFailure() {
    const next = this.text.failures.find((at) => at > (this.#mark ?? -1)) ?? this.text.failures[0];
    this.goTo(next);
  }

  async search(words) {
    this.#search = words ? new Search(words) : null;
    this.#hit = -1;
    this.#clear();
    if (this.space) this.draw();
    if (this.#search) await this.#find({ goes: true });
    this.#tell();
  }

  async #find({ goes = false } = {}) {
    const search = this.#search;
    const hits = await search.through(this.text);
    if (!hits || search !== this.#search) return;
    if (goes && hits.length) this.step(0);
  }

  step(by) {
    const hits = this.#search?.hits ?? [];
    if (!hits.length) return;
    this.#hit = by ? (this.#hit + by + hits.length) % hits.length : 0;
    this.goTo(hits[this.#hit]);
  }

  /** Show a long line whole, in a box below: rows have one height. */
  whole(index) {
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
    text.textContent = plain(this.text.lines[index]);
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
    const failures = text.failures.length;
    tool("failure").hidden = !failures;
    tool("failure").firstElementChild.textContent = failures === 1 ? words.failure : fill(words.failures, { n: failures.toLocaleString() });
    tool("follow").hidden = !text.mayGrow;
    tool("follow").setAttribute("aria-pressed", String(this.#isFollowing));
    const hits = this.#search?.hits.length ?? 0;
    tool("hits").textContent = !this.#search ? "" : hits ? fill(words.hits, { at: (this.#hit + 1).toLocaleString(), n: hits.toLocaleString() }) : words.none;
    for (const name of ["previous", "next"]) tool(name).hidden = hits < 2;
    this.#tellNew(this.#isFollowing || !text.mayGrow ? 0 : text.lines.length - this.#seen);
    if (!text.lines.length && this.space) this.say(words.empty);
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
