// The list: one line for each pod, its newest attempt.

import { get, query } from "../lib/api.js";
import { badge, el, replace } from "../lib/dom.js";
import { OUTCOMES, age, count, date, path, plural } from "../lib/format.js";
import { Table } from "../lib/table.js";

const PAGE = 1000; // decisions in an answer
const MOST = 20000; // pods in the list; older ones leave it
const remembered = { outcome: "", search: "" };

// Times are whole seconds; ids of one gateway end with a number that grows.
const number = (summary) => Number(summary.id.split("-").pop());
const byAge = (one, other) => one.time === other.time ? number(other) - number(one) : one.time < other.time ? 1 : -1;

const pod = (summary) => `${summary.namespace}/${summary.pod}`;

export async function pods({ stream }) {
  const byPod = new Map(); // newest first
  let next = "";

  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Outcome" });
  const search = el("input", { type: "search", placeholder: "Search pod, node, reason  ( / )", "aria-label": "Search pods", value: remembered.search });
  const loaded = el("span", { class: "muted" });
  const older = el("button", { type: "button", class: "quiet", hidden: true }, "Load older");
  const table = new Table({
    label: "Pods",
    key: pod,
    empty: "No decision matches. Pods appear here as kube-scheduler asks Moorage about them.",
    open: (row) => { location.hash = path("pod", row.namespace, row.pod, row.id); },
    columns: [
      { key: "pod", title: "Pod", width: "minmax(130px, 2fr)", narrow: "minmax(0, 1fr)", cell: (row) => el("a", { class: "name", href: path("pod", row.namespace, row.pod, row.id), title: pod(row) }, el("span", { class: "muted" }, `${row.namespace}/`), row.pod) },
      { key: "outcome", title: "Outcome", width: "130px", narrow: "118px", cell: (row) => badge(row.outcome) },
      { key: "node", title: "Node", width: "minmax(90px, 1.2fr)", phone: "hide", cell: (row) => row.node ? el("a", { class: "name", href: path("node", row.node), title: row.node }, row.node) : "–" },
      { key: "reason", title: "Reason", width: "minmax(120px, 4fr)", phone: "line", cell: (row) => row.reason || "" },
      { key: "nodes", title: "Feasible", width: "96px", number: true, phone: "hide", hint: "feasible nodes of those that kube-scheduler named", cell: (row) => `${count(row.feasible)} / ${count(row.nodes)}` },
      { key: "attempt", title: "Attempt", width: "78px", number: true, phone: "hide", cell: (row) => String(row.attempt || 1) },
      { key: "time", title: "Age", width: "56px", narrow: "48px", number: true, cell: (row) => el("span", { title: date(row.time) }, age(row.time)) },
    ],
  });

  function matches(summary) {
    const text = `${pod(summary)} ${summary.node || ""} ${summary.reason || ""}`.toLowerCase();
    return (!remembered.outcome || summary.outcome === remembered.outcome) && remembered.search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  function show() {
    const all = [...byPod.values()];
    const counts = Object.fromEntries(OUTCOMES.map((name) => [name, 0]));
    for (const each of all) counts[each.outcome] = (counts[each.outcome] || 0) + 1;
    replace(tabs, [["", "All", all.length], ...OUTCOMES.map((name) => [name, name, counts[name]])].map(([name, title, number]) => el("button", { type: "button", role: "tab", "data-kind": name, "aria-selected": String(remembered.outcome === name), class: number || !name ? "" : "none", onclick: () => { remembered.outcome = name; show(); } }, title, el("b", {}, count(number)))));
    const rows = all.filter(matches);
    table.setRows(rows);
    loaded.textContent = rows.length === all.length ? plural(all.length, "pod") : `${count(rows.length)} of ${plural(all.length, "pod")}`;
    older.hidden = !next || byPod.size >= MOST;
  }

  // An attempt that is older than what is listed changes nothing.
  function take(summary) {
    const former = byPod.get(pod(summary));
    if (former && byAge(summary, former) > 0) return false;
    byPod.set(pod(summary), summary);
    return true;
  }

  function newestFirst() {
    const ordered = [...byPod.entries()].sort(([, one], [, other]) => byAge(one, other));
    byPod.clear();
    for (const [name, summary] of ordered.slice(0, MOST)) byPod.set(name, summary);
  }

  async function load() {
    const answer = await get(`../decisions?${query({ limit: PAGE, continue: next })}`);
    next = answer.continue || "";
    answer.items.forEach(take);
    newestFirst();
    show();
  }

  let redraw = 0;
  function decision(summary) {
    if (take(summary) && !redraw) redraw = setTimeout(() => { redraw = 0; newestFirst(); show(); }, 150);
  }

  async function again() { // what was missed while the stream was lost
    if (stream.state === "live") { next = ""; await load().catch(() => {}); }
  }

  search.addEventListener("input", () => { remembered.search = search.value; table.body.scrollTop = 0; show(); });
  older.addEventListener("click", () => load());
  stream.addEventListener("state", again);
  const clock = setInterval(() => table.schedule(), 10000); // ages
  await load();
  const element = el("section", { class: "page fill" }, el("h1", { class: "hidden" }, "Pods"), el("div", { class: "toolbar" }, tabs, search), table.element, el("footer", { class: "foot" }, loaded, older));
  return {
    element, table, search, decision,
    destroy() { clearInterval(clock); clearTimeout(redraw); stream.removeEventListener("state", again); table.destroy(); },
  };
}
