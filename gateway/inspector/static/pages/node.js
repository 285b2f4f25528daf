// One node: what it offers, what is on it, and the newest decisions for it.

import { get, joined, query } from "../lib/api.js";
import { badge, bar, el, facts, podName } from "../lib/dom.js";
import { age, amount, count, matches, path, plural } from "../lib/format.js";
import { Table } from "../lib/table.js";

const DECISIONS = 20;

export async function node(_, name) {
  const [found, newest] = await Promise.all([
    get(`../nodes/${joined(name)}`),
    get(`../decisions?${query({ node: name, limit: DECISIONS })}`).catch(() => ({ items: [] })),
  ]);
  const search = el("input", { type: "search", placeholder: "Search pods on it  ( / )", "aria-label": "Search pods" });
  const table = new Table({
    label: `Pods on ${name}`,
    key: (row) => `${row.namespace}/${row.pod}`,
    empty: "No pod is on this node.",
    open: (row) => { location.hash = path("pod", row.namespace, row.pod); },
    columns: [
      { key: "pod", title: "Pod", width: "minmax(140px, 3fr)", narrow: "minmax(0, 1fr)", cell: (row) => podName(row, path("pod", row.namespace, row.pod)) },
      { key: "state", title: "State", width: "110px", narrow: "88px", cell: (row) => badge(row.terminating ? "terminating" : row.state, row.state === "bound" ? "quiet" : "binding") },
      { key: "cpu", title: "CPU", width: "70px", narrow: "56px", number: true, cell: (row) => amount("cpu", row.requested.cpu || 0) },
      { key: "memory", title: "Memory", width: "80px", narrow: "70px", number: true, cell: (row) => amount("memory", row.requested.memory || 0) },
      { key: "priority", title: "Priority", width: "90px", number: true, phone: "hide", cell: (row) => count(row.priority) },
      { key: "scheduler", title: "Scheduler", width: "minmax(90px, 1fr)", phone: "hide", cell: (row) => row.schedulerName || "default-scheduler" },
    ],
  });
  const pods = [...(found.podsOnIt || [])].sort((one, other) => (`${one.namespace}/${one.pod}` < `${other.namespace}/${other.pod}` ? -1 : 1));
  const show = () => table.setRows(pods.filter((row) => matches(`${row.namespace}/${row.pod}`, search.value)));
  search.addEventListener("input", show);
  show();
  const resources = Object.keys(found.allocatable).sort();
  const element = el("section", { class: "page" },
    el("header", { class: "title" },
      el("p", { class: "crumbs" }, el("a", { href: "#/nodes" }, "Nodes"), " /"),
      el("h1", {}, name, " ", found.ready ? "" : badge("not ready", "failed"), found.unschedulable ? badge("cordoned", "unschedulable") : "")),
    el("div", { class: "columns" },
      el("section", {}, el("h2", {}, "Requested"),
        el("div", { class: "funnel" }, resources.map((resource) => { const used = resource === "pods" ? found.pods : found.requested[resource] || 0; return el("div", { class: "level" }, el("span", {}, resource), bar(found.allocatable[resource] ? used / found.allocatable[resource] : 0, resource), el("b", {}, `${amount(resource, used)} / ${amount(resource, found.allocatable[resource])}`)); }))),
      el("section", {}, el("h2", {}, "Node"), facts([
        ["Zone", found.zone],
        ["Taints", found.taints.map((taint) => `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`).join(", ")],
        ["Conditions", found.conditions.filter((each) => each.status === "True").map((each) => each.type).join(", ")],
        ["Not seen yet", found.assumed + found.claimed ? `${found.assumed} assumed, ${found.claimed} claimed` : ""],
      ]), el("details", {}, el("summary", {}, plural(Object.keys(found.labels).length, "label")), el("ul", { class: "labels" }, Object.entries(found.labels).sort().map(([key, value]) => el("li", {}, `${key}=${value}`)))))),
    el("div", { class: "toolbar" }, el("h2", {}, plural(pods.length, "pod")), found.hiddenPods ? el("span", { class: "muted" }, `and ${plural(found.hiddenPods, "pod")} of namespaces that you may not read`) : null, pods.length > 10 ? search : null), table.element,
    el("h2", {}, "Newest decisions for it"),
    newest.items.length ? el("ul", { class: "list" }, newest.items.map((each) => el("li", {}, el("a", { class: "name", href: path("pod", each.namespace, each.pod, each.id) }, `${each.namespace}/${each.pod}`), badge(each.outcome), el("span", { class: "grow" }, each.reason || ""), el("span", { class: "muted" }, age(each.time))))) : el("p", { class: "muted" }, "None is kept."));
  return { element, table, search: pods.length > 10 ? search : undefined, back: "#/nodes", destroy: () => table.destroy() };
}
