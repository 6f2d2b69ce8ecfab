// Asks the search of a built site, with the site's own script, which a page runs as a worker.
// node docs/ask_search.js <folder of the site> <question>...   prints for each question the places found, the best first.
"use strict";

const { readFileSync, readdirSync } = require("node:fs");
const { join } = require("node:path");

const INDEX = 0, READY = 1, ASK = 2, FOUND = 3;

const [site, ...questions] = process.argv.slice(2);
const scripts = join(site, "assets/javascripts/workers");
const [script] = readdirSync(scripts).filter((name) => name.startsWith("search."));
const index = JSON.parse(readFileSync(join(site, "search.json"), "utf8"));
const worker = {};
new Function("self", readFileSync(join(scripts, script), "utf8"))(worker);

function call(type, data, answer) {
  return new Promise((resolve, reject) => {
    worker.postMessage = (said) => (said.type === answer ? resolve(said.data) : reject(new Error(JSON.stringify(said))));
    worker.onmessage({ data: { type, data } });
  });
}

async function main() {
  await call(INDEX, index, READY);
  // Made anew for each question: the script writes into it.
  const everywhere = () => ({ input: { type: "operator", data: { operator: "and", operands: [] } }, aggregation: { input: [] } });
  const found = [];
  for (const input of questions) {
    const { items } = await call(ASK, { input, filter: everywhere() }, FOUND);
    found.push(items.map((item) => index.items[item.id].location));
  }
  console.log(JSON.stringify(found));
}

main();
