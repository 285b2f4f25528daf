// Asks the gateway, and follows its stream of decisions.

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

export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined)).toString();

const RETRY = 3000; // milliseconds

export class Stream extends EventTarget {
  // Dispatches "decision" with a summary, and "state" with live, lost or off.
  constructor(path) {
    super();
    this.state = "lost";
    this.path = path;
    this.connect();
  }

  connect() {
    const source = new EventSource(this.path);
    source.addEventListener("open", () => this.become("live"));
    source.addEventListener("decision", (event) => this.dispatchEvent(new CustomEvent("decision", { detail: JSON.parse(event.data) })));
    source.addEventListener("error", () => {
      this.become("lost");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again itself
      setTimeout(() => this.connect(), RETRY);
    });
  }

  become(state) {
    const before = this.state;
    this.state = state;
    if (before !== state) this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }
}
