// What is said without being asked: to everybody in a corner, and to screen readers in one polite place.
const place = document.getElementById("said");
const toasts = document.getElementById("toasts");

export function announce(words) {
  if (!place || !words) return;
  place.textContent = "";
  setTimeout(() => (place.textContent = words.replace(/\s+/g, " ").trim()), 50); // the same words twice are said twice
}

export function toast(node) {
  const box = document.createElement("div");
  box.className = "toast";
  announce(node.textContent);
  box.append(...node.childNodes);
  toasts.append(box);
  const leave = () => (box.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : box.remove());
  setTimeout(leave, 6000);
}

export function say(words) {
  const node = document.createElement("p");
  node.textContent = words;
  toast(node);
}
