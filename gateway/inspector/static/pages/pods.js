// The first page: every pod that waits, with why, and the newest attempt on each other pod.

import { every, get, query } from "../lib/api.js";
import { badge, el, named, podName, replace, typed } from "../lib/dom.js";
import { OUTCOMES, age, ask, asked, count, date, matches, path, shownOf } from "../lib/format.js";
import { Table } from "../lib/table.js";

const PAGE = 1000; // decisions in an answer
const MOST = 20000; // pods in the list; older ones leave it
const REFRESH = 5000; // milliseconds
const TITLES = { waiting: "every pod without a node, whatever its outcome is", pending: "waits, and no attempt on it is kept" };
const SETTLED = 60000; // milliseconds after which a decision shows in the list of pods that wait
let left = {}; // what was asked for when the page was left

// Times are whole seconds: of a pod's attempts in one second, the number tells; of other pods', the order in which they came.
const sameSecond = (one, other) => pod(one) === pod(other) ? (other.attempt || 1) - (one.attempt || 1) : other.came - one.came;
const byAge = (one, other) => one.time === other.time ? sameSecond(one, other) : one.time < other.time ? 1 : -1;

const pod = (row) => `${row.namespace}/${row.pod}`;

export async function pods({ stream }) {
  if (location.hash.includes("?")) left = asked();
  else ask(left);
  const decided = new Map(); // the newest attempt by pod, newest first
  let waiting = new Map(); // pods without a node
  let found = []; // other pods whose names match, which Moorage has not decided on
  let all = 0; // pods that wait, also those that are not listed
  let read = 0; // when the pods that wait were asked for, in milliseconds since 1970
  let next = "";
  let taken = 0; // attempts
  const wanted = { q: "", outcome: "", ...asked() };

  const tabs = el("div", { class: "tabs", role: "group", "aria-label": "Outcome" });
  const search = el("input", { type: "search", placeholder: "Search pod, node, reason  ( / )", "aria-label": "Search pods", value: wanted.q });
  const loaded = el("span", { class: "muted", role: "status" });
  const older = el("button", { type: "button", class: "quiet", hidden: true }, "Load older");
  const to = (row) => path("pod", row.namespace, row.pod, ...(row.id ? [row.id] : []));
  const table = new Table({
    label: "Pods",
    key: pod,
    open: (row) => { location.hash = to(row); },
    columns: [
      { key: "pod", title: "Pod", width: "minmax(190px, 2.7fr)", narrow: "minmax(0, 1fr)", cell: (row) => podName(row, to(row)) },
      { key: "outcome", title: "Outcome", width: "124px", narrow: "118px", cell: (row) => badge(row.outcome) },
      { key: "node", title: "Node", width: "minmax(80px, 1.8fr)", phone: "hide", cell: (row) => row.node ? named(row.node, path("node", row.node)) : "–" },
      { key: "reason", title: "Reason", width: "minmax(160px, 5.6fr)", phone: "line", cell: (row) => el("span", { title: row.reason }, typed(row.reason || "")) },
      { key: "nodes", title: "Feasible", width: "84px", number: true, phone: "hide", hint: "feasible nodes of those that kube-scheduler named", cell: (row) => !row.nodes ? "–" : `${count(row.feasible)} / ${count(row.nodes)}` },
      { key: "attempt", title: "Attempt", width: "74px", number: true, phone: "hide", hint: "attempts that Moorage was asked about", cell: (row) => String(row.attempt ?? 1) },
      { key: "time", title: "Age", width: "56px", narrow: "48px", number: true, cell: (row) => el("span", { title: date(row.time) }, age(row.time)) },
    ],
  });

  // One row a pod. That it has a node, or is about to get one, is known from the stream at once.
  function rows() {
    const rest = new Map(decided);
    const first = [];
    for (const [name, each] of waiting) {
      const newest = rest.get(name);
      const same = newest?.uid === each.uid;
      if (same && (newest.outcome === "bound" || (newest.outcome === "binding" && !each.settled))) continue;
      rest.delete(name);
      first.push({ ...(same ? newest : {}), ...each, outcome: same ? newest.outcome : "pending", attempt: same ? newest.attempt : each.attempt, waits: true });
    }
    return [...first, ...[...rest.values()].map(orGone), ...found.filter((each) => !rest.has(pod(each)))];
  }

  // Neither bound nor waiting: it was deleted, or whoever asked made it up.
  function orGone(row) {
    const isKnown = all > waiting.size || row.outcome === "bound" || new Date(row.time) > read - SETTLED;
    return isKnown ? row : { ...row, outcome: "gone", reason: `there is no such pod any more; ${row.outcome}: ${row.reason || ""}` };
  }

  const isIn = (row, outcome) => !outcome || (outcome === "waiting" ? row.waits : row.outcome === outcome);

  function show() {
    const listed = rows();
    const choices = [["", "All", listed.length], ["waiting", "waiting", Math.max(all, waiting.size)], ...["pending", ...OUTCOMES].map((name) => [name, name, listed.filter((row) => isIn(row, name)).length])];
    replace(tabs, choices.map(([name, title, rowsOf]) => el("button", { type: "button", "data-kind": name === "waiting" ? "" : name, title: TITLES[name], "aria-pressed": String(wanted.outcome === name), onclick: () => { wanted.outcome = name; changed(); } }, title, el("b", {}, count(rowsOf)))));
    const shown = listed.filter((row) => isIn(row, wanted.outcome) && matches(`${pod(row)} ${row.node || ""} ${row.reason || ""} ${row.scheduler || ""}`, wanted.q));
    table.empty = listed.length ? "No pod matches." : "No pod waits, and Moorage was not asked about one yet.";
    table.setRows(shown);
    const more = all > waiting.size ? `; of ${count(all)} that wait, ${count(waiting.size)}: search finds the others` : "";
    loaded.textContent = shownOf(shown.length, listed.length, "pod") + more;
    older.hidden = !next || decided.size >= MOST;
  }

  function changed() {
    left = { q: wanted.q, outcome: wanted.outcome };
    ask(left);
    table.body.scrollTop = 0;
    show();
  }

  // An attempt that is older than what is listed changes nothing.
  function take(summary) {
    const former = decided.get(pod(summary));
    if (former && byAge(summary, former) > 0) return false;
    decided.set(pod(summary), { ...summary, came: ++taken });
    return true;
  }

  function newestFirst() {
    const ordered = [...decided.entries()].sort(([, one], [, other]) => byAge(one, other));
    decided.clear();
    for (const [name, summary] of ordered.slice(0, MOST)) decided.set(name, summary);
  }

  async function load() {
    const answer = await get(`../decisions?${query({ limit: PAGE, continue: next })}`);
    next = answer.continue || "";
    answer.items.reverse().forEach(take); // the newest last, which stays
    newestFirst();
  }

  async function loadPods() {
    const text = wanted.q;
    const asked = Date.now();
    const [every, matching] = await Promise.all([get(`../decisions/pending?${query({ limit: PAGE })}`), text ? get(`../decisions/pending?${query({ search: text })}`) : { items: [], placed: [] }]);
    if (text !== wanted.q) return;
    const former = waiting;
    read = asked;
    const row = (each) => {
      const [namespace, name] = each.pod.split("/");
      return { namespace, pod: name, uid: each.uid, node: each.node, reason: each.reason, scheduler: each.schedulerName, attempt: each.tried, time: each.since || each.created, outcome: "bound" };
    };
    const listed = [...every.items, ...matching.items].map(row).sort((one, other) => (one.time < other.time ? 1 : -1));
    waiting = new Map(listed.map((each) => [pod(each), { ...each, settled: former.get(pod(each))?.uid === each.uid }]));
    found = matching.placed.map(row);
    all = every.pods;
    show();
  }

  let redraw = 0;
  function decision(summary) {
    if (take(summary) && !redraw) redraw = setTimeout(() => { redraw = 0; newestFirst(); show(); }, 150);
  }

  async function again() { // what was missed while the stream was lost
    if (stream.state !== "live") return;
    next = "";
    await Promise.all([load(), loadPods()]).catch(() => {});
    show();
  }

  let asking = 0;
  search.addEventListener("input", () => {
    wanted.q = search.value;
    changed();
    clearTimeout(asking);
    asking = setTimeout(() => loadPods().catch(() => {}), 250);
  });
  older.addEventListener("click", () => load().then(show));
  stream.addEventListener("state", again);
  const stop = every(REFRESH, () => loadPods().catch(() => table.schedule()));
  await Promise.all([load(), loadPods()]);
  show();
  const element = el("section", { class: "page fill" }, el("h1", { class: "hidden" }, "Pods"), el("div", { class: "toolbar" }, tabs, search), table.element, el("footer", { class: "foot" }, loaded, older));
  return {
    element, table, search, decision,
    destroy() { stop(); clearTimeout(redraw); clearTimeout(asking); stream.removeEventListener("state", again); table.destroy(); },
  };
}
