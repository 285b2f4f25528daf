// One pod: why it is where it is, its attempts, and of one of them the evidence and every node.

import { every, get, joined, query } from "../lib/api.js";
import { append, badge, el, facts, named, note, replace, typed } from "../lib/dom.js";
import { clock, count, date, path, plural, seconds, span } from "../lib/format.js";
import { nodeTable } from "./nodetable.js";
import { best, whatIf } from "./whatif.js";

const REFRESH = 10000; // milliseconds

export async function decision({ stream }, namespace, pod, id = "") {
  const base = `../decisions/${joined(namespace, pod)}`;
  const read = () => get(base);
  let known = await read();
  const head = el("div", {});
  const body = el("div", {});
  const page = { element: el("section", { class: "page decision" }, head, whatIf(namespace, pod), body), back: "#/pods" };
  let nodes;

  const current = () => known.attempts.find((each) => each.id === id) || known.attempts[0];

  function showHead() {
    const { attempts } = known;
    const attempt = current();
    const now = attempt === attempts[0] ? known : null;
    replace(head,
      el("header", { class: "title" },
        el("p", { class: "crumbs" }, el("a", { href: "#/pods" }, "Pods"), " / ", namespace, " /"),
        el("h1", {}, pod, " ", attempt ? badge(attempt.outcome) : now?.place),
        el("p", { class: "reason" }, typed(now?.reason || attempt?.reason || "Nothing is decided yet.")),
        el("a", { href: `${path("map")}?${query({ pod: `${namespace}/${pod}` })}` }, "On the map of nodes")),
      id && attempt?.id !== id ? note(`Attempt ${id} is not kept any more${attempt ? "; this is the newest one" : ""}.`) : null,
      now?.next.length ? el("section", {}, el("h2", {}, "Next"), el("ul", { class: "why" }, now.next.map((step) => el("li", {}, typed(step))))) : null,
      timeline(known, attempt, namespace, pod));
  }

  async function showBody() {
    const attempt = current();
    nodes?.destroy();
    if (!attempt) return replace(body);
    const place = el("div", { class: "nodes" });
    const reason = (attempt === known.attempts[0] && known.reason) || attempt.reason;
    replace(body, el("div", { class: "columns" }, evidence(attempt, reason), el("section", {}, el("h2", {}, "Attempt"), attemptFacts(attempt))), place);
    nodes = await nodeTable(`${base}/${encodeURIComponent(attempt.id)}/nodes`, attempt).catch((error) => ({ element: el("section", {}, el("h2", {}, "Nodes"), note(error.message), best(attempt.score?.top || [])), destroy() {} }));
    replace(place, nodes.element);
    Object.assign(page, { table: nodes.table, search: nodes.search });
  }

  showHead();
  await showBody();
  page.decision = async (summary) => {
    if (summary.namespace !== namespace || summary.pod !== pod) return;
    known = await read();
    showHead();
    await showBody();
  };
  const stop = every(REFRESH, async () => {
    if (known.place.startsWith("is on")) return;
    const newer = await read().catch(() => known);
    const same = newer.attempts[0]?.id === known.attempts[0]?.id;
    known = same ? { ...newer, attempts: known.attempts } : newer;
    showHead();
    if (!same) await showBody();
  });
  page.destroy = () => { stop(); nodes?.destroy(); };
  return page;
}

const NEWEST = 8; // steps that are shown at once

// From created to bound: attempts with their parts, and what Events say, the oldest first.
function timeline({ attempts, events, created, place, since }, current, namespace, pod) {
  const steps = [...(attempts || [])].reverse().map((each) => ({ time: each.time, title: `Attempt ${each.attempt || 1}`, kind: each.outcome, attempt: each, text: each.reason }));
  for (const each of events || []) steps.push({ time: each.time, title: each.reason, by: each.by, text: each.note });
  if (created) steps.push({ time: created, title: "Created" });
  if (place.startsWith("is on") && since) steps.push({ time: since, title: "Bound", kind: "bound", text: place });
  const first = attempts?.at(-1); // the oldest that is kept
  const missing = (first?.attempt || 1) - 1;
  if (missing) steps.push({ time: first.time, title: missing > 1 ? `Attempts 1 to ${missing}` : "Attempt 1", text: `${missing > 1 ? "are" : "is"} not kept any more`, former: true });
  // Times of the API server are whole seconds: what is created comes before all else of its second.
  steps.sort((one, other) => new Date(one.time) - new Date(other.time) || (other.title === "Created") - (one.title === "Created") || Boolean(other.former) - Boolean(one.former));
  const item = (step, before) => {
    const waited = before ? (new Date(step.time) - new Date(before.time)) / 1000 : 0;
    const title = step.attempt ? el("a", { href: path("pod", namespace, pod, step.attempt.id), "aria-current": step.attempt === current ? "true" : undefined }, step.title) : step.title;
    return el("li", { "data-kind": step.kind || "" },
      step.former ? el("time", {}) : el("time", { datetime: step.time, title: date(step.time) }, clock(step.time)),
      el("span", { class: "muted" }, !step.former && waited >= 1 ? `+${span(waited)}` : ""),
      el("div", {}, el("b", {}, title), step.kind && step.attempt ? [" ", badge(step.kind)] : "", step.by ? el("span", { class: "muted" }, ` ${step.by}`) : "", step.text ? el("p", {}, step.text) : "", step.attempt ? parts(step.attempt) : ""));
  };
  const items = steps.map((step, index) => item(step, steps[index - 1]));
  const list = (some) => el("ol", { class: "timeline" }, some);
  const early = items.length > NEWEST + 2 ? items.splice(0, items.length - NEWEST) : [];
  return el("section", {}, el("h2", {}, "Timeline"),
    early.length ? el("details", {}, el("summary", {}, `${early.length} before`), list(early)) : null,
    list(items),
    events === null ? note("Events are not shown: the gateway may not list them, or the API server did not answer.") : null);
}

const PARTS = ["queue", "filter", "score", "permit", "bind"];

function parts({ queueSeconds, filter, preempt, score: scored, bind }) {
  const before = (bind?.plugins || []).reduce((total, each) => total + each.seconds, 0);
  const taken = [queueSeconds, (filter || preempt)?.seconds, scored?.seconds, before, bind && Math.max(0, bind.seconds - before)];
  const total = taken.reduce((sum, each) => sum + (each || 0), 0);
  const shown = PARTS.map((name, index) => [name, taken[index] || 0]).filter(([, value]) => value);
  const widths = shown.map(([name, value]) => { const bar = el("i", { "data-part": name }); bar.style.width = `${(value / total) * 100}%`; return bar; });
  const plugins = (bind?.plugins || []).map((each) => `${each.plugin} ${each.point}: ${each.result}, ${seconds(each.seconds)}`).join("; ");
  return shown.length ? el("div", { class: "parts" }, el("span", { class: "track", "aria-hidden": "true" }, widths), el("small", {}, shown.map(([name, value]) => el("span", {}, el("i", { "data-part": name }), `${name} ${seconds(value)}`)), plugins)) : null;
}

const OF_FUNNEL = /^\S+ rejected \d+ of \d+ nodes: /;

function evidence(attempt, reason) {
  const section = el("section", {}, el("h2", {}, "Evidence"));
  const why = (attempt.why || []).filter((each) => each !== reason && each !== attempt.reason && !OF_FUNNEL.test(each));
  if (why.length) section.append(el("ul", { class: "why" }, why.map((each) => el("li", {}, each))));
  const phase = attempt.filter || attempt.preempt;
  if (!phase) return section;
  const rejecting = phase.plugins?.filter((each) => each.rejected).sort((one, other) => other.rejected - one.rejected) || [];
  const funnel = el("div", { class: "funnel" });
  append(funnel, [line("offered", phase.nodes, phase.nodes, "named", phase === attempt.preempt ? "by kube-scheduler, with pods that it might evict" : ""), rejecting.map((each) => line(each.plugin, each.rejected, phase.nodes, "rejected", reasonsOf(each))), line("feasible", phase.feasible, phase.nodes, "feasible")]);
  section.append(funnel);
  const told = [...(attempt.filter?.plugins || []), ...(attempt.score?.plugins || [])].map((each) => (each.failure ? `${each.plugin} failed: ${each.failure}` : each.note && `${each.plugin}: ${each.note}`));
  const more = told.filter((each) => each && !attempt.why?.includes(each));
  if (more.length) section.append(el("ul", { class: "why" }, more.map((each) => el("li", {}, each))));
  return section;
}

// Kube-scheduler tells apart whether evicting pods would help; people read a reason once.
function reasonsOf({ reasons = [] }) {
  const nodes = {};
  for (const each of reasons) nodes[each.reason] = (nodes[each.reason] || 0) + each.nodes;
  return Object.entries(nodes).map(([reason, number]) => `${count(number)}: ${reason}`).join("\n");
}

function line(title, nodes, of, kind, detail = "") {
  const fill = el("i", { "data-kind": kind });
  fill.style.width = `${of ? (nodes / of) * 100 : 0}%`;
  return el("div", { class: "level" }, el("span", {}, title), el("span", { class: "track" }, fill), el("b", {}, count(nodes)), detail && el("small", {}, detail));
}

function attemptFacts(attempt) {
  const { filter, score: scored, bind, claim } = attempt;
  const cached = (phase) => (phase?.cachedNodes ? ` (${plural(phase.cachedNodes, "node")} from the cache)` : "");
  return facts([
    ["Time", date(attempt.time)],
    ["Profile", attempt.profile],
    ["Node", bind && !bind.error ? named(bind.node, path("node", bind.node)) : ""],
    ["Claimed", claim && `${claim.node} for ${claim.plugins.join(", ")}`],
    ["Filter", filter && seconds(filter.seconds) + cached(filter)],
    ["Score", scored && seconds(scored.seconds) + cached(scored)],
    ["Queued", seconds(attempt.queueSeconds || 0)],
    ["Bind", bind && seconds(bind.seconds)],
    ["Cluster as of", `${seconds(attempt.snapshotAgeSeconds || 0)} before`],
    ["Policy", attempt.policyRevision && el("a", { href: "#/policy" }, attempt.policyRevision)],
    ["Id", attempt.id],
  ]);
}
