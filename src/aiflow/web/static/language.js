// The language may be changed in another tab: what stands around the part that is fetched again then speaks it, too.
const html = document.documentElement;
const AROUND = ["lost", "found", "update", "live"];

// The same tree in both; what a script wrote has no words of its own in what comes.
function reword(now, then) {
  if (!now || !then) return;
  for (const { name, value } of now.attributes) if (name !== "hidden") then.setAttribute(name, value);
  now.childNodes.forEach((node, at) => {
    const twin = then.childNodes[at];
    if (node.nodeType === Node.ELEMENT_NODE) reword(node, twin);
    else if (twin?.nodeType === node.nodeType) twin.data = node.data;
  });
}

// `text` is the whole page that a part was taken from.
export function followLanguage(text) {
  const language = document.getElementById("content")?.lang;
  if (!language || language === html.lang) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  if (page.documentElement.lang !== language) return;
  for (const id of AROUND) reword(page.getElementById(id), document.getElementById(id));
  reword(page.querySelector(".skip"), document.querySelector(".skip"));
  document.getElementById("palette").innerHTML = page.getElementById("palette").innerHTML; // the server's own part
  html.lang = language;
}
