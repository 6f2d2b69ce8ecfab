// Runs the shared cases through the browser's modules and prints what they made, for the tests to compare.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, cases] = process.argv.slice(2);
const { ansiLine, ansiNodes } = await import(pathToFileURL(`${folder}/ansi.js`));
const { viewLine } = await import(pathToFileURL(`${folder}/log_lines.js`));

// As much of a document as is needed; there is no way to set HTML in it.
const document = {
  createDocumentFragment: () => ({ children: [], append(node) { this.children.push(node); } }),
  createElement: (tag) => ({ tag, className: "", textContent: "" }),
  createTextNode: (text) => ({ text }),
};
const lines = JSON.parse(readFileSync(cases, "utf-8"));
const made = lines.map((line, at) => {
  const { spans } = ansiLine(line);
  const { number, kind, text, heading, leftOut } = viewLine(line, at + 1);
  const nodes = ansiNodes(spans, document).children;
  return { spans: spans.map((span) => [span.text, span.classes]), nodes, number, kind, text, heading, leftOut };
});
process.stdout.write(JSON.stringify(made));
