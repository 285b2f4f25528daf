// All nodes, with what is on them.

import { all, every } from "../lib/api.js";
import { badge, bar, el, named } from "../lib/dom.js";
import { amount, matches, path, plural, shownOf } from "../lib/format.js";
import { Table } from "../lib/table.js";

const REFRESH = 10000; // milliseconds

export async function nodes() {
  let items = [];
  const search = el("input", { type: "search", placeholder: "Search node, zone  ( / )", "aria-label": "Search nodes" });
  const counted = el("span", { class: "muted" });
  const table = new Table({
    label: "Nodes",
    key: (row) => row.name,
    empty: "The gateway knows no node of such a name or zone.",
    open: (row) => { location.hash = path("node", row.name); },
    sort: (key, descending) => { table.setOrder(key, descending); show(); },
    columns: [
      { key: "name", title: "Node", width: "minmax(130px, 2fr)", narrow: "minmax(0, 1fr)", sort: true, cell: (row) => named(row.name, path("node", row.name)) },
      { key: "zone", title: "Zone", width: "minmax(70px, 1fr)", sort: true, phone: "hide", cell: (row) => row.zone || "–" },
      { key: "ready", title: "State", width: "minmax(90px, 1fr)", sort: true, phone: "hide", cell: (row) => [row.ready ? "" : badge("not ready", "failed"), row.unschedulable ? badge("cordoned", "unschedulable") : "", row.ready && !row.unschedulable ? el("span", { class: "muted" }, row.taints ? plural(row.taints, "taint") : "ready") : ""] },
      { key: "pods", title: "Pods", width: "100px", narrow: "82px", number: true, sort: true, cell: (row) => `${row.pods}${row.allocatable.pods ? ` / ${row.allocatable.pods}` : ""}` },
      { key: "cpu", title: "CPU", width: "minmax(84px, 1fr)", narrow: "72px", sort: true, hint: "requested of allocatable", cell: (row) => bar(row.cpu, `${amount("cpu", row.requested.cpu || 0)} of ${amount("cpu", row.allocatable.cpu || 0)} requested`) },
      { key: "memory", title: "Memory", width: "minmax(84px, 1fr)", narrow: "76px", sort: true, hint: "requested of allocatable", cell: (row) => bar(row.memory, `${amount("memory", row.requested.memory || 0)} of ${amount("memory", row.allocatable.memory || 0)} requested`) },
      { key: "assumed", title: "Assumed", width: "84px", number: true, sort: true, phone: "hide", hint: "assumed and claimed pods, which the watch has not shown here yet", cell: (row) => (row.assumed + row.claimed ? String(row.assumed + row.claimed) : "–") },
    ],
  });

  function show() {
    const { key, descending } = table.order;
    const rows = items.filter((row) => matches(`${row.name} ${row.zone}`, search.value));
    rows.sort((one, other) => ((one[key] < other[key] ? -1 : one[key] > other[key] ? 1 : 0) * (descending ? -1 : 1)) || (one.name < other.name ? -1 : 1));
    table.setRows(rows);
    counted.textContent = shownOf(rows.length, items.length, "node");
  }

  async function load() {
    ({ items } = await all("../nodes"));
    show();
  }

  search.addEventListener("input", () => { table.body.scrollTop = 0; show(); });
  table.setOrder("name", false);
  await load();
  const stop = every(REFRESH, () => load().catch(() => {}));
  return {
    element: el("section", { class: "page fill" }, el("div", { class: "toolbar" }, el("h1", {}, "Nodes"), counted, search), table.element),
    table, search,
    destroy() { stop(); table.destroy(); },
  };
}
