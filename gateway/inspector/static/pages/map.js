// A tile for each node, filled as far as its pods ask for; a pod colours the tiles by verdict.

import { all, every, get, joined, query } from "../lib/api.js";
import { TOUCH, el, note, printable, replace, typed } from "../lib/dom.js";
import { ask, asked, count, path, plural, ranked } from "../lib/format.js";

const REFRESH = 10000; // milliseconds
const SHADES = 5; // causes with a colour of their own; others are grey
const SHARES = { cpu: ["CPU", (node) => node[2]], memory: ["Memory", (node) => node[3]], pods: ["Pods", (node) => (node[5] ? node[4] / node[5] : 0)] };
const FLAGS = [[1, "not ready"], [2, "cordoned"], [4, "tainted"]];

export async function map() {
  const wanted = { by: "topology.kubernetes.io/zone", of: "cpu", pod: "", ...asked() };
  const tiles = new Map(); // by node
  let nodes = [];
  let verdicts; // by node, of the pod that is looked at
  let lit; // the cause whose nodes stand out

  const by = el("select", { "aria-label": "Grouped by", onchange: () => change({ by: by.value }, true) });
  const of = el("select", { "aria-label": "Filled by", onchange: () => change({ of: of.value }) }, Object.entries(SHARES).map(([name, [title]]) => el("option", { value: name }, title)));
  const search = el("input", { type: "search", list: "waiting", placeholder: "Colour by a pod: NAMESPACE/POD  ( / )", "aria-label": "Pod whose verdicts colour the nodes", value: wanted.pod, onchange: () => change({ pod: search.value.trim() }, true) });
  const choices = el("datalist", { id: "waiting" });
  const counted = el("span", { class: "muted" });
  const legend = el("div", {});
  const key = el("p", { class: "legend" });
  const body = el("div", { class: "groups" });
  const readout = el("output", { class: "readout" });
  const element = el("section", { class: "page map" }, el("div", { class: "toolbar" }, el("h1", {}, "Map of nodes"), counted, el("label", {}, "by", by), el("label", {}, "filled by", of), search, choices), legend, key, body, readout);

  function change(values, again = false) {
    Object.assign(wanted, values);
    if (values.of) tiles.clear(); // made anew is a fifth of the work of changing each
    ask({ ...wanted });
    if (again) refresh().catch((error) => replace(legend, note(error.message, "bad"))); else show();
  }

  const words = (node) => {
    const [name, value, cpu, memory, pods, most, flags] = node;
    const percent = (share) => `${Math.round(share * 100)} %`;
    return [name, value, verdicts && verdicts.text(name), `CPU ${percent(cpu)}, memory ${percent(memory)} requested, ${count(pods)}${most ? ` of ${count(most)}` : ""} pods`, FLAGS.filter(([bit]) => flags & bit).map(([, text]) => text).join(", ")].filter(Boolean).join(" · ");
  };

  function read(node) {
    readout.textContent = node ? printable(words(node)) : TOUCH.matches ? "Touch a node to open it." : "Point at a node to read it; arrows move, Enter opens.";
  }

  function paint(tile, node) {
    tile.style.setProperty("--f", `${Math.round(Math.min(1, SHARES[wanted.of][1](node)) * 100)}%`);
    const verdict = verdicts?.shade(node[0]);
    if (verdict === undefined) delete tile.dataset.v; else tile.dataset.v = verdict;
    if (node[6]) tile.dataset.flags = node[6]; else delete tile.dataset.flags;
    tile.classList.toggle("lit", lit !== undefined && verdicts?.cause(node[0]) === lit);
  }

  function showKey() {
    const tile = (share) => { const one = el("i", { class: "sample" }); one.style.setProperty("--f", `${share}%`); return one; };
    replace(key, [0, 50, 100].map((share) => [tile(share), `${share} %`]), el("span", {}, wanted.of === "pods" ? "of the pods that fit are there" : `of ${SHARES[wanted.of][0]} is requested`), el("i", { class: "sample", "data-flags": "1" }), "not ready or cordoned");
  }

  function show() {
    showKey();
    element.classList.toggle("dimmed", lit !== undefined);
    const same = tiles.size === nodes.length && nodes.every((node) => tiles.get(node[0])?.node[1] === node[1]);
    if (!same) tiles.clear();
    const groups = {};
    for (const node of nodes) {
      const tile = tiles.get(node[0])?.tile || el("a", { class: "t", href: path("node", node[0]), tabindex: "-1", "aria-label": node[0], "data-name": node[0] });
      paint(tile, node);
      tiles.set(node[0], { tile, node });
      (groups[node[1]] ||= []).push(node);
    }
    if (same && nodes.length) return;
    element.dataset.size = nodes.length > 1200 ? "tiny" : nodes.length > 200 ? "small" : nodes.length > 100 ? "" : "large";
    const ordered = Object.entries(groups).sort(([one], [other]) => (one < other ? -1 : 1));
    replace(body, ordered.map(([value, members]) => {
      const mean = members.reduce((sum, node) => sum + SHARES[wanted.of][1](node), 0) / members.length;
      return el("section", { class: "group" }, el("h2", {}, value || "without the label", " ", el("span", { class: "muted" }, `${plural(members.length, "node")}, ${Math.round(mean * 100)} % ${wanted.of}`)), el("div", { class: "tilesof" }, members.map((node) => tiles.get(node[0]).tile)));
    }));
    if (!nodes.length) replace(body, note("The gateway knows no node."));
    body.querySelector(".t")?.setAttribute("tabindex", "0");
  }

  function showLegend(problem) {
    if (!wanted.pod) return replace(legend);
    if (problem) return replace(legend, note(problem));
    const entry = ({ shade, text, nodes: number }, cause) => el("button", { type: "button", "aria-pressed": String(lit === cause), onclick: () => { lit = lit === cause ? undefined : cause; showLegend(); show(); } }, el("i", { class: "swatch", "data-v": shade }), el("b", {}, count(number)), text);
    replace(legend, el("p", { class: "reason" }, el("a", { href: path("pod", ...wanted.pod.split("/")) }, wanted.pod), ": ", typed(verdicts.reason)), el("div", { class: "verdicts" }, verdicts.causes.map(entry), verdicts.unasked ? el("button", { type: "button", onclick: tryNow }, "What would Moorage say now?") : null));
  }

  async function tryNow() {
    lit = undefined;
    try { verdicts = await verdictsNow(wanted.pod, nodes.map(([name]) => name)); } catch (error) { return showLegend(error.message); }
    showLegend();
    show();
  }

  async function refresh() {
    lit = undefined;
    verdicts = undefined;
    let problem;
    const [answer, waiting] = await Promise.all([get(`../map?${query({ by: wanted.by })}`), get(`../decisions/pending?${query({ limit: 100 })}`)]);
    nodes = answer.nodes;
    if (wanted.pod) verdicts = await verdictsOn(wanted.pod, nodes.map(([name]) => name)).catch((error) => { problem = error.message; });
    counted.textContent = plural(answer.total, "node") + (answer.total > nodes.length ? `, the first ${count(nodes.length)}` : "");
    replace(by, [...new Set([...answer.labels, wanted.by])].map((label) => el("option", { value: label, selected: label === wanted.by }, label)));
    replace(choices, waiting.items.map((each) => el("option", { value: each.pod })));
    of.value = wanted.of;
    showLegend(problem);
    show();
    read();
  }

  const at = (event) => { const tile = event.target.closest(".t"); return tile && tiles.get(tile.dataset.name); };
  body.addEventListener("pointerover", (event) => {
    const found = at(event);
    read(found?.node);
    if (found) found.tile.title = printable(words(found.node));
  });
  body.addEventListener("focusin", (event) => read(at(event)?.node));
  body.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = step && at(event) ? [...body.querySelectorAll(".t")] : [];
    const next = all[all.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  await refresh();
  const destroy = every(REFRESH, async () => {
    const answer = await get(`../map?${query({ by: wanted.by })}`).catch(() => null);
    if (answer && answer.by === wanted.by) { nodes = answer.nodes; show(); }
  });
  return { element, search, destroy };
}

// What the newest attempt on a pod found out about each node; if Moorage was not asked, that.
async function verdictsOn(pod, names) {
  const base = `../decisions/${joined(...pod.split("/"))}`;
  const { attempts, reason } = await get(base);
  const filtered = attempts.find((each) => each.filter);
  if (!filtered) return { ...coloured(reason || "nothing is decided yet", [], names, "not asked"), unasked: true };
  const { items } = await all(`${base}/${joined(filtered.id)}/nodes`);
  return coloured(reason || filtered.reason, ranked(items), names, unnamed(reason || ""));
}

// Of nodes that kube-scheduler did not name: why, where the reason says what its own filters found.
function unnamed(reason) {
  const own = [...reason.matchAll(/\d+ ([^,:]+) \(kube-scheduler\)/g)].map(([, text]) => text);
  return own.length ? `kube-scheduler: ${own.join(" or ")}` : "kube-scheduler did not name it";
}

// What Moorage would say now.
async function verdictsNow(pod, names) {
  const { before, profile } = await get(`../simulate/${joined(...pod.split("/"))}`);
  const rejected = before.rejected.flatMap(({ plugin, reason, names: of }) => of.map((node) => ({ node, verdict: "rejected", plugin, reason })));
  const known = new Set(rejected.map(({ node }) => node));
  const items = names.filter((node) => !known.has(node)).map((node) => ({ node, verdict: "feasible" }));
  return coloured(`profile ${profile} of Moorage would say now: ${before.words[0] || "all nodes pass"}`, [...rejected, ...items], names, "");
}

// The legend, and what it says of each node; of those that are not among the items, the rest holds.
function coloured(reason, items, names, rest) {
  const rows = new Map(items.map((item) => [item.node, item]));
  const counts = new Map();
  for (const item of items) counts.set(causeOf(item), (counts.get(causeOf(item)) || 0) + 1);
  const feasible = counts.get("feasible");
  counts.delete("feasible");
  const missing = names.filter((name) => !rows.has(name)).length;
  const causes = [
    ...(feasible ? [{ shade: "yes", text: "feasible", nodes: feasible }] : []),
    ...[...counts].sort(([, one], [, other]) => other - one).map(([text, number], index) => ({ shade: index < SHADES ? String(index) : "no", text, nodes: number })),
    ...(missing ? [{ shade: "none", text: rest, nodes: missing }] : []),
  ];
  const places = new Map(causes.map(({ text }, index) => [text, index]));
  const of = (node) => (rows.has(node) ? causeOf(rows.get(node)) : rest);
  return {
    reason, causes,
    cause: (node) => places.get(of(node)),
    shade: (node) => causes[places.get(of(node))]?.shade,
    text: (node) => of(node) + (rows.get(node)?.place ? `, ${rows.get(node).place}` : ""),
  };
}

const causeOf = (item) => (item.verdict === "rejected" ? `${item.plugin}: ${item.reason}` : item.verdict);
