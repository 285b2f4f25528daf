// One pod: why it is where it is, its attempts, and of one of them the evidence and every node.

import { get } from "../lib/api.js";
import { append, badge, el, facts, note, replace } from "../lib/dom.js";
import { clock, count, date, path, plural, score, seconds } from "../lib/format.js";
import { nodeTable } from "./nodetable.js";

export async function decision({ stream }, namespace, pod, id = "") {
  const base = `../decisions/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`;
  const read = () => get(`${base}?explain=true`);
  let { attempts, explanation } = await read();
  const element = el("section", { class: "page decision" });
  const page = { element, back: "#/pods" };
  let nodes;

  async function show() {
    const attempt = attempts.find((each) => each.id === id) || attempts[0];
    const now = attempt === attempts[0] ? explanation : null;
    const reason = now?.reason || attempt?.reason || "Nothing is decided yet.";
    nodes?.destroy();
    const place = el("div", { class: "nodes" });
    replace(element,
      el("header", { class: "title" },
        el("p", { class: "crumbs" }, el("a", { href: "#/pods" }, "Pods"), " / ", namespace, " /"),
        el("h1", {}, pod, " ", attempt ? badge(attempt.outcome) : now?.place),
        el("p", { class: "reason" }, reason)),
      now?.next.length ? el("section", {}, el("h2", {}, "Next"), el("ul", { class: "why" }, now.next.map((step) => el("li", {}, step)))) : null,
      attempt ? attemptTabs(attempts, attempt, namespace, pod) : null,
      attempt ? el("div", { class: "columns" }, evidence(attempt, reason), el("section", {}, el("h2", {}, "Attempt"), attemptFacts(attempt))) : null,
      place);
    if (!attempt) return;
    nodes = await nodeTable(`${base}/${encodeURIComponent(attempt.id)}/nodes`, attempt).catch((error) => ({ element: el("section", {}, el("h2", {}, "Nodes"), note(error.message), bestNodes(attempt)), destroy() {} }));
    replace(place, nodes.element);
    Object.assign(page, { table: nodes.table, search: nodes.search });
  }

  await show();
  page.decision = async (summary) => {
    if (summary.namespace !== namespace || summary.pod !== pod) return;
    ({ attempts, explanation } = await read());
    await show();
  };
  page.destroy = () => nodes?.destroy();
  return page;
}

function attemptTabs(attempts, current, namespace, pod) {
  if (attempts.length < 2) return null;
  return el("nav", { class: "tabs", "aria-label": "Attempts" }, attempts.map((each) => el("a", { href: path("pod", namespace, pod, each.id), "data-kind": each.outcome, "aria-current": each === current ? "true" : undefined, title: each.reason }, `#${each.attempt || 1}`, el("b", {}, clock(each.time)))));
}

function evidence(attempt, reason) {
  const section = el("section", {}, el("h2", {}, "Evidence"));
  const why = (attempt.why || []).filter((each) => each !== reason);
  if (why.length) section.append(el("ul", { class: "why" }, why.map((each) => el("li", {}, each))));
  const phase = attempt.filter || attempt.preempt;
  if (!phase) return section;
  const rejecting = phase.plugins?.filter((each) => each.rejected).sort((one, other) => other.rejected - one.rejected) || [];
  const funnel = el("div", { class: "funnel" });
  append(funnel, [line("offered", phase.nodes, phase.nodes, "named", phase === attempt.preempt ? "by kube-scheduler, with pods that it might evict" : ""), rejecting.map((each) => line(each.plugin, each.rejected, phase.nodes, "rejected", each.reasons?.map((reason) => `${count(reason.nodes)}: ${reason.reason}`).join("\n"))), line("feasible", phase.feasible, phase.nodes, "feasible")]);
  section.append(funnel);
  const failed = [...(attempt.filter?.plugins || []), ...(attempt.score?.plugins || [])].filter((each) => each.failure || each.note);
  if (failed.length) section.append(el("ul", { class: "why" }, failed.map((each) => el("li", {}, `${each.plugin}: ${each.failure || each.note}`))));
  return section;
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
    ["Node", bind && !bind.error ? el("a", { class: "name", href: path("node", bind.node) }, bind.node) : ""],
    ["Claimed", claim && `${claim.node} for ${claim.plugins.join(", ")}`],
    ["Filter", filter && seconds(filter.seconds) + cached(filter)],
    ["Score", scored && seconds(scored.seconds) + cached(scored)],
    ["Queued", seconds(attempt.queueSeconds || 0)],
    ["Bind", bind && seconds(bind.seconds)],
    ["State", `generation ${attempt.generation || 0}, ${seconds(attempt.snapshotAgeSeconds || 0)} old`],
    ["Policy", attempt.policyRevision && el("a", { href: "#/policy" }, attempt.policyRevision)],
    ["Id", attempt.id],
  ]);
}

function bestNodes(attempt) {
  const top = attempt.score?.top || [];
  if (!top.length) return null;
  return el("ol", { class: "best" }, top.map((each) => el("li", {}, el("b", {}, each.node), ` ${score(each.total)} `, el("small", {}, (each.plugins || []).map((one) => `${one.plugin} ${score(one.normalized)} × ${one.weight}`).join(", ")))));
}
