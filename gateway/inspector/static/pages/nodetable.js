// Every node of an attempt: a strip that shows all of them, and a table with search and sort.

import { all } from "../lib/api.js";
import { badge, el } from "../lib/dom.js";
import { matches, path, ranked, score, shownOf } from "../lib/format.js";
import { Strip, paint } from "../lib/heat.js";
import { Table } from "../lib/table.js";

export async function nodeTable(base, attempt) {
  const { items, plugins } = await all(base);
  ranked(items);
  const search = el("input", { type: "search", placeholder: "Search node, plugin, reason  ( / )", "aria-label": "Search nodes" });
  const counted = el("span", { class: "muted" });
  const bound = attempt.bind && !attempt.bind.error ? attempt.bind.node : "";
  const only = { value: "" };
  const scored = items.some((row) => row.total !== undefined && row.total !== null);

  const table = new Table({
    label: "Nodes of this attempt",
    key: (row) => row.node,
    empty: "No node matches.",
    open: (row) => { location.hash = path("node", row.node); },
    sort: (key, descending) => { table.setOrder(key, descending); show(); },
    columns: [
      ...(scored ? [{ key: "rank", title: "#", width: "62px", number: true, sort: true, hint: "Moorage's order", cell: (row) => el("span", { title: row.place }, row.place ? `${row.rank}${row.tied ? "=" : ""}` : "–") }] : []),
      { key: "node", title: "Node", width: "minmax(120px, 1.4fr)", narrow: "minmax(0, 1fr)", sort: true, cell: (row) => el("a", { class: row.node === bound ? "name bound" : "name", href: path("node", row.node), title: row.node === bound ? `${row.node}: the pod is bound here` : row.node }, row.node === bound ? "● " : "", row.node) },
      ...(scored ? [{ key: "total", title: "Total", width: "62px", number: true, sort: true, cell: (row) => score(row.total), paint: (row, cell) => paint(cell, row.total) }] : []),
      ...plugins.score.map(({ plugin, weight }) => ({ key: plugin, title: plugin, hint: `${plugin}, weight ${weight}`, width: "minmax(56px, 1fr)", number: true, sort: true, phone: "hide", cell: (row) => score(row.scores?.[plugin]?.normalized), paint: (row, cell) => { const one = row.scores?.[plugin]; if (one) { paint(cell, one.normalized); cell.title = `${plugin}: raw ${one.raw}, normalised ${one.normalized}, weight ${weight}`; } } })),
      { key: "reason", title: "Verdict", width: plugins.score.length > 4 ? "minmax(140px, 1.6fr)" : "minmax(140px, 3fr)", sort: true, phone: "line", cell: (row) => row.verdict === "rejected" ? el("span", { title: `${row.plugin}: ${row.reason}` }, badge("rejected"), " ", el("b", {}, row.plugin), `: ${row.reason}`) : el("span", { class: "muted" }, row.verdict) },
    ],
  });
  const strip = new Strip({ label: `Heat map of ${items.length} nodes and ${plugins.score.length} score plugins`, open: (node) => table.select(table.rows.indexOf(node)) });
  table.onSelect = (row) => strip.mark(row);

  const value = { rank: (row) => row.rank || Infinity, reason: (row) => `${row.verdict} ${row.plugin} ${row.reason}` };
  for (const key of ["node", "total"]) value[key] = (row) => row[key];
  const cause = (row) => `${row.plugin || ""} ${row.reason || ""}`; // those without a score stand together by their cause
  const read = (key, row) => (value[key] ? value[key](row) : row.scores?.[key]?.normalized);

  function show() {
    const { key, descending } = table.order;
    const rows = items.filter((row) => (!only.value || row.verdict === only.value) && matches(`${row.node} ${row.plugin || ""} ${row.reason || ""}`, search.value));
    const keyed = rows.map((row) => [read(key, row), row]);
    keyed.sort(([one, a], [other, b]) => {
      const missing = (one === undefined || one === null) - (other === undefined || other === null);
      const order = missing || (one < other ? -1 : one > other ? 1 : 0) * (descending ? -1 : 1);
      return order || (cause(a) < cause(b) ? -1 : cause(a) > cause(b) ? 1 : a.node < b.node ? -1 : 1);
    });
    const sorted = keyed.map(([, row]) => row);
    table.setRows(sorted);
    strip.show(sorted, lines(plugins, items));
    counted.textContent = shownOf(sorted.length, items.length, "node");
  }

  search.addEventListener("input", () => { table.body.scrollTop = 0; show(); });
  const choices = el("select", { "aria-label": "Verdict", onchange: () => { only.value = choices.value; show(); } }, [["", "all verdicts"], ["feasible", "feasible"], ["rejected", "rejected"]].map(([name, title]) => el("option", { value: name }, title)));
  table.setOrder("rank", false);
  show();
  const rejected = items.some((row) => row.verdict === "rejected");
  const legend = el("div", { class: "legend" }, scored && [el("span", {}, "0"), el("i", { class: "ramp" }), el("span", {}, "100")], rejected && [el("i", { class: "no" }), el("span", {}, "rejected")]);
  const element = el("section", {}, el("div", { class: "toolbar" }, el("h2", {}, "Nodes"), counted, legend, choices, search), scored || rejected ? strip.element : el("p", { class: "muted" }, "No plugin rejected or scored a node in this attempt."), table.element);
  return { element, table, search, destroy() { table.destroy(); strip.destroy(); } };
}

// A line for each plugin that has said something.
function lines(plugins, items) {
  const rejecting = new Set(items.filter((row) => row.verdict === "rejected").map((row) => row.plugin));
  const scoring = new Set(items.flatMap((row) => Object.keys(row.scores || {})));
  const filters = plugins.filter.filter((plugin) => rejecting.has(plugin)).map((plugin) => ({ title: `${plugin} rejects`, value: (row) => (row.plugin === plugin && row.verdict === "rejected" ? -1 : undefined) }));
  const scores = plugins.score.filter(({ plugin }) => scoring.has(plugin)).map(({ plugin, weight }) => ({ title: weight === 1 ? plugin : `${plugin} ×${weight}`, value: (row) => row.scores?.[plugin]?.normalized }));
  const total = scores.length ? [{ title: "Total", value: (row) => row.total ?? undefined }] : [];
  return [...total, ...scores, ...filters];
}
