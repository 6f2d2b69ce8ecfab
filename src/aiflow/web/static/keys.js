// The keyboard (DESIGN §7). Links say by `data-key` which keys lead to them; nothing destructive has a single key.

const isTyping = (event) => event.isComposing || event.target.closest?.("input, textarea, select, [contenteditable]");
const ROWS = ".item, .grid tbody tr:not(.group), .events > li, .line-row";

function rows() {
  return [...document.querySelectorAll("#main :is(" + ROWS + ")")];
}

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement) || row.getAttribute("aria-current") === "true");
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  for (const row of all) row.removeAttribute("aria-current");
  to.setAttribute("aria-current", "true");
  to.scrollIntoView({ block: "nearest" });
  to.querySelector("a, button")?.focus({ preventScroll: true });
}

function current() {
  return rows().find((row) => row.getAttribute("aria-current") === "true") ?? document.querySelector(".reason");
}

export function startKeys() {
  let before = "";
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isTyping(event)) return event.target.blur();
    if (isTyping(event) || event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const two = `${before} ${event.key}`;
    before = event.key;
    const link = document.querySelector(`[data-key="${CSS.escape(two)}"]`) ?? document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); before = ""; return link.click(); }
    if (event.key === "/") {
      const field = document.querySelector("input[type=search]");
      if (field) { event.preventDefault(); field.focus(); }
    } else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "a") {
      const field = (current() ?? document).querySelector("[name=answer]");
      if (field) { event.preventDefault(); field.focus(); }
    } else if (/^[1-9]$/.test(event.key)) current()?.querySelectorAll("[name=choice]")[Number(event.key) - 1]?.click();
  });
}
