// One event stream for all tabs: a browser allows six connections to a host, and each tab would take one.
// It runs as a SharedWorker; `listen` is the same for a page that has none.
const KINDS = ["hello", "gap", "bye", "activity", "requests", "runs", "run", "log", "locks", "auto", "settings", "sessions", "still"];
// The server gives a sign every 1.5 s. Who hears nothing for this long has lost it, even if the connection still stands.
const SILENT = 4000;
const TICK = 500;
const PATIENCE = 10_000;

export function listen(tell) {
  let source = null;
  let heard = 0;
  let begun = 0;
  let ticked = Date.now();
  let again = null;
  const open = () => {
    again = null;
    source?.close();
    source = new EventSource("/api/events");
    begun = heard = Date.now();
    source.onopen = () => { heard = Date.now(); tell({ kind: "open" }); };
    source.onerror = () => {
      begun = Date.now();
      tell({ kind: "lost" });
      // A browser gives up when it is refused: it may be a server that starts, or one that knows us no more.
      if (source.readyState !== EventSource.CLOSED || again) return;
      tell({ kind: "refused" });
      again = setTimeout(open, 2000);
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
      tell({ kind: "lost", isSilent: true });
      open();
    } else if (source.readyState === EventSource.CONNECTING && now - begun > PATIENCE) open();
  }, TICK);
  return () => { clearInterval(ticking); clearTimeout(again); source.close(); };
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  const ports = new Set();
  const kept = new Map(); // how things are, for tabs that come later
  let begun = false;
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
    port.onmessage = (message) => (message.data === "bye" ? ports.delete(port) : welcome(port));
    welcome(port);
    if (!begun) { begun = true; listen(tell); }
  };
}
