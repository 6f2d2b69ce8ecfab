// Comments on lines of a diff: opened by the button of a line, kept in this tab, sent with "Send back".
const head = () => document.querySelector("[data-run-id]");
const run = head()?.dataset.runId;
const words = () => JSON.parse(head().dataset.words); // in the language of the page, which may change
const KEY = `draft lines ${run}`;
const fill = (text, facts) => text.replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);

function read() {
  try { return JSON.parse(sessionStorage.getItem(KEY)) ?? []; } catch { return []; }
}
function write(comments) {
  try { comments.length ? sessionStorage.setItem(KEY, JSON.stringify(comments)) : sessionStorage.removeItem(KEY); } catch { /* private mode */ }
  tell();
}
function keep(path, line, text, quote = "") {
  const others = read().filter((each) => each.path !== path || each.line !== line);
  write(text.trim() ? [...others, { path, line, text: text.trim(), quote }] : others);
}

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
}

// --- Beside the lines: their buttons are made where somebody reads, or a long diff would be slow.

const BLOCK = 20; // lines; fewer than fit on a screen
const LINES = "tr[data-line]";
const pathOf = (row) => row.closest("[data-path]").dataset.path;
// What stands in a line, without what the page says of it.
function quoteOf(row) {
  const text = row.lastElementChild.cloneNode(true);
  for (const ours of text.querySelectorAll(".muted")) ours.remove();
  return text.textContent.trim().slice(0, 1000);
}
const about = (row) => fill(words().comment, { n: row.dataset.line, path: pathOf(row) });

function buttonOf(row) {
  const made = row.querySelector(".say-it");
  if (made) return made;
  const [button, text] = [make("button", "say-it", "+"), row.lastElementChild];
  text.id = `${row.id}-text`;
  button.type = "button";
  button.tabIndex = -1; // one of a file can be reached by Tab, the others from there
  button.setAttribute("aria-label", about(row));
  button.setAttribute("aria-describedby", text.id);
  row.cells[0].prepend(button);
  return button;
}

function offer(region) {
  const rows = [...region.querySelectorAll(LINES)];
  if (!rows.length) return;
  const isOffered = () => region.closest("[data-commented]");
  buttonOf(rows[0]).tabIndex = 0;
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      if (!isOffered()) continue;
      const at = rows.indexOf(target);
      rows.slice(Math.max(0, at - BLOCK), at + BLOCK).forEach(buttonOf);
    }
  });
  for (let at = 0; at < rows.length; at += BLOCK) seen.observe(rows[at]);
}

function open(row, isFocused = true) {
  const [path, line] = [pathOf(row), Number(row.dataset.line)];
  if (row.nextElementSibling?.classList.contains("say")) return row.nextElementSibling.querySelector("textarea").focus();
  const place = make("tr", "say");
  const cell = make("td");
  cell.colSpan = 4;
  const label = make("label");
  const field = make("textarea", "field");
  field.rows = 2;
  field.placeholder = words().what;
  field.value = read().find((each) => each.path === path && each.line === line)?.text ?? "";
  label.append(make("span", "label", about(row)), field);
  const drop = make("button", "btn btn--sm btn--quiet", words().drop);
  drop.type = "button";
  const leave = () => reach(row);
  drop.addEventListener("click", () => { keep(path, line, ""); place.remove(); leave(); });
  // A number is no place once the base has moved: what stands in the line goes with it.
  const quote = quoteOf(row);
  field.addEventListener("input", () => keep(path, line, field.value, quote));
  field.addEventListener("keydown", (event) => event.key === "Escape" && leave());
  cell.append(label, drop);
  place.append(cell);
  row.after(place);
  if (isFocused) field.focus();
}

function restore() {
  for (const { path, line } of read()) {
    const file = [...document.querySelectorAll("[data-commented] [data-path]")].find((each) => each.dataset.path === path);
    const row = file && [...file.querySelectorAll(LINES)].findLast((each) => each.dataset.line === String(line));
    if (row) open(row, false);
  }
}

function reach(row) {
  for (const each of row.closest("[data-path]").querySelectorAll(".say-it[tabindex='0']")) each.tabIndex = -1;
  buttonOf(row).tabIndex = 0;
  buttonOf(row).focus();
}

function move(region, by) {
  const rows = [...region.querySelectorAll(LINES)];
  const at = rows.indexOf(document.activeElement.closest(LINES));
  const to = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  if (to) reach(to);
}

document.addEventListener("click", ({ target }) => {
  const number = target.closest?.("[data-commented] td.no");
  if (number?.parentElement.dataset.line) open(number.parentElement);
});
document.addEventListener("keydown", (event) => {
  const region = event.target.closest?.("[data-commented] [data-path]");
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!region || !by || event.isComposing || event.target.matches("textarea, button:not(.say-it)")) return;
  event.preventDefault();
  move(region, by);
});

// --- In the dialog that sends them

function collect(dialog) {
  const form = dialog.querySelector("form[action$='/send-back']");
  if (!form || form.dataset.lines) return;
  form.dataset.lines = "";
  const comments = read();
  if (!comments.length) return;
  const kept = make("input");
  kept.type = "hidden";
  kept.dataset.draft = `lines ${run}`; // gone once it is sent
  const list = make("ul", "lines");
  for (const { path, line, text, quote = "" } of comments) {
    const item = make("li");
    item.append(make("code", "", `${path}:${line}`), make("span", "", ` ${text}`));
    for (const [name, value] of [["line_path", path], ["line_number", line], ["line_text", text], ["line_quote", quote]]) {
      const field = make("input");
      Object.assign(field, { type: "hidden", name, value });
      item.append(field);
    }
    list.append(item);
  }
  const field = form.querySelector("[name=comment]");
  field.required = false;
  field.closest("label").after(make("p", "label", fill(words().kept, { n: comments.length })), list, kept);
}

let count = 0;

function tell() {
  count = read().length;
  for (const link of document.querySelectorAll("[data-comments]")) link.dataset.count = count ? String(count) : "";
}

// Gone from the tab, but not by the reader's hand: they were sent.
function settle() {
  if (count && !read().length) for (const each of document.querySelectorAll("tr.say")) each.remove();
  tell();
}

// A run that was sent back or accepted takes no comments, one whose acceptance was undone takes them again.
function change() {
  const isOpen = document.getElementById("say-how") !== null;
  for (const diff of document.querySelectorAll(".diffs:has([data-path])")) {
    if (diff.hasAttribute("data-commented") === isOpen) continue;
    diff.toggleAttribute("data-commented", isOpen);
    if (isOpen) diff.querySelectorAll("[data-path]").forEach(offer);
    else for (const each of diff.querySelectorAll(".say-it")) each.remove();
  }
  tell();
}

if (run) {
  const dialog = document.getElementById("dialog");
  new MutationObserver(() => collect(dialog)).observe(dialog, { childList: true });
  document.body.addEventListener("htmx:after:swap", change);
  document.body.addEventListener("aiflow:done", settle);
  document.querySelectorAll("[data-commented] [data-path]").forEach(offer);
  restore();
  tell();
}
