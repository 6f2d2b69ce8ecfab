// One event stream for all tabs: a browser allows six connections to a host, and each tab would take one.
// It runs as a SharedWorker; `listen` is the same for a page that has none.
const KINDS = ["hello", "gap", "bye", "activity", "requests", "runs", "run", "log", "locks", "auto", "settings", "sessions", "still"];

export function listen(tell) {
  let source = null;
  const open = () => {
    source = new EventSource("/api/events");
    source.onopen = () => tell({ kind: "open" });
    source.onerror = () => {
      tell({ kind: "lost" });
      // A browser gives up when it is refused: try again, it may be a server that starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
    };
    for (const kind of KINDS) source.addEventListener(kind, (event) => tell({ kind, ids: JSON.parse(event.data) }));
  };
  open();
  return () => source.close();
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  const ports = new Set();
  const kept = new Map(); // how things are, for tabs that come later
  let begun = false;
  const tell = (fact) => {
    if (fact.kind === "hello" || fact.kind === "open" || fact.kind === "lost") kept.set(fact.kind === "hello" ? "hello" : "state", fact);
    for (const port of ports) port.postMessage(fact);
  };
  self.onconnect = (event) => {
    const port = event.ports[0];
    ports.add(port);
    port.onmessage = (message) => message.data === "bye" && ports.delete(port);
    for (const fact of kept.values()) port.postMessage(fact);
    if (!begun) { begun = true; listen(tell); }
  };
}
