// One event stream for all tabs: a browser allows six connections to a host, and each tab would take one.
// It runs as a SharedWorker; `listen` is the same for a page that has none.
const KINDS = ["hello", "gap", "bye", "activity", "requests", "runs", "run", "log", "locks", "auto", "settings", "sessions", "still"];
// The server gives a sign every 1.5 s. Who hears nothing for this long has lost it, even if the connection still stands.
const SILENT = 4000;
const TICK = 500;
const PATIENCE = 10_000;
// How long it waits before it tries again: the first time, and at most.
const FIRST = 1000;
const LONGEST = 5000;

// Returns how to end it and how to try again at once. `again` of what is lost is when that happens by itself.
export function listen(tell) {
  let source = null;
  let wait = FIRST;
  let heard = 0;
  let begun = 0;
  let ticked = Date.now();
  let again = null;
  const open = () => {
    clearTimeout(again);
    source?.close();
    source = new EventSource("/api/events");
    begun = heard = Date.now();
    source.onopen = () => { heard = Date.now(); wait = FIRST; tell({ kind: "open" }); };
    source.onerror = () => {
      const isRefused = source.readyState === EventSource.CLOSED;
      source.close(); // a browser would try again, too, but not say when
      tell({ kind: "lost", again: Date.now() + wait });
      again = setTimeout(open, wait);
      wait = Math.min(2 * wait, LONGEST);
      if (isRefused) tell({ kind: "refused" }); // it may be a server that starts, or one that knows us no more
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        heard = Date.now();
        tell({ kind, ids: JSON.parse(event.data) });
      });
    }
  };
  open();
  const ticking = setInterval(() => {
    const now = Date.now();
    if (now - ticked > 6 * TICK) begun = heard = now; // this machine slept: what it missed may be on its way
    ticked = now;
    if (source.readyState === EventSource.OPEN && now - heard > SILENT) {
      tell({ kind: "lost", isSilent: true, again: now });
      open();
    } else if (source.readyState === EventSource.CONNECTING && now - begun > PATIENCE) open();
  }, TICK);
  const close = () => { clearInterval(ticking); clearTimeout(again); source.close(); };
  return { close, tryNow: () => source.readyState === EventSource.OPEN || open() };
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  const ports = new Set();
  const kept = new Map(); // how things are, for tabs that come later
  let stream = null;
  const tell = (fact) => {
    if (fact.kind === "hello") kept.set("hello", fact);
    if (fact.kind === "open" || fact.kind === "lost") kept.set("state", fact);
    for (const port of ports) port.postMessage(fact);
  };
  const welcome = (port) => {
    ports.add(port);
    for (const fact of kept.values()) port.postMessage(fact);
  };
  self.onconnect = (event) => {
    const port = event.ports[0];
    const says = { bye: () => ports.delete(port), hello: () => welcome(port), again: () => stream.tryNow() };
    port.onmessage = (message) => says[message.data]();
    welcome(port);
    stream ??= listen(tell);
  };
}
