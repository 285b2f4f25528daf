// Asks the gateway, and follows its stream of decisions.

const PART = 5000; // items in an answer
const RETRY = 3000; // milliseconds

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function get(path, signal) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, signal });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failure(response.status, answer.error || `${path} answers ${response.status}`);
  return answer;
}

// All items of a list that is answered in parts, and what else the first part has.
export async function all(path) {
  const found = await get(`${path}?${query({ limit: PART })}`);
  while (found.items.length < found.total) {
    const { items } = await get(`${path}?${query({ limit: PART, offset: found.items.length })}`);
    if (!items.length) break;
    found.items.push(...items);
  }
  return found;
}

// Parts of a path, each of which may have any character.
export const joined = (...parts) => parts.map(encodeURIComponent).join("/");

export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined)).toString();


// Whether pages ask again: not in a hidden tab, and not where the address has ?updates=off before the "#".
export const updates = {
  get off() { return new URLSearchParams(location.search).get("updates") === "off"; },
  get rest() { return document.hidden || this.off; },
};

// Calls ask every so many milliseconds while pages ask again; returns what ends that.
export function every(milliseconds, ask) {
  const timer = setInterval(() => { if (!updates.rest) ask(); }, milliseconds);
  return () => clearInterval(timer);
}

export class Stream extends EventTarget {
  // Dispatches "decision" with a summary, and "state" with live, lost or paused.
  constructor(path) {
    super();
    this.state = "lost";
    this.path = path;
    document.addEventListener("visibilitychange", () => this.follow());
    this.follow();
  }

  // Opens or closes the stream, as pages ask again or not.
  follow() {
    if (!updates.rest) return this.source || this.connect();
    clearTimeout(this.again);
    this.source?.close();
    this.source = undefined;
    this.become("paused");
  }

  connect() {
    const source = (this.source = new EventSource(this.path));
    source.addEventListener("open", () => this.become("live"));
    source.addEventListener("decision", (event) => this.dispatchEvent(new CustomEvent("decision", { detail: JSON.parse(event.data) })));
    source.addEventListener("error", () => {
      this.become("lost");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again itself
      this.again = setTimeout(() => this.connect(), RETRY);
    });
  }

  become(state) {
    const before = this.state;
    this.state = state;
    if (before !== state) this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }
}
