// What plugins took and rejected over time.

import { get, query, updates } from "../lib/api.js";
import { el, plain, replace } from "../lib/dom.js";
import { count, seconds } from "../lib/format.js";
import { Chart, colorOf } from "../lib/chart.js";

const WINDOWS = [["5m", "5 min", 300], ["15m", "15 min", 900], ["1h", "1 h", 3600]];
const SHOWN = 6; // plugins in a chart, those with the most
const remembered = { since: "15m", phase: "filter" };

const sum = (values) => values.reduce((total, value) => total + (value || 0), 0);
const most = (values) => values.reduce((found, value) => Math.max(found, value || 0), 0);

export async function plugins() {
  let charts = [];
  let timer = 0;
  const element = el("section", { class: "page" });
  const body = el("div", {});

  async function load() {
    const answer = await get(`../plugins?${query({ since: remembered.since })}`);
    draw(answer);
    clearTimeout(timer);
    timer = setTimeout(again, Math.max(2, answer.interval) * 1000);
  }

  function again() {
    timer = setTimeout(again, 5000);
    if (!updates.rest) load().catch(() => {});
  }

  function draw({ times, series, interval }) {
    charts.forEach((chart) => chart.destroy());
    const mine = series.filter((each) => each.plugin && each.phase === remembered.phase).map((each) => ({ ...each, total: sum(each.cycles), spent: sum(each.cycles.map((cycles, index) => cycles * (each.mean[index] || 0))) }));
    mine.sort((one, other) => other.spent - one.spent);
    mine.forEach((each, index) => { each.color = colorOf(index); });
    const slow = mine.slice(0, SHOWN);
    const rejecting = [...mine].sort((one, other) => sum(other.rejected) - sum(one.rejected)).slice(0, SHOWN).filter((each) => sum(each.rejected));
    charts = [
      new Chart({ label: "p99 of the time in a cycle", format: seconds, series: slow.map((each) => ({ label: each.plugin, color: each.color })) }),
      new Chart({ label: "Rejected nodes", format: (value) => count(Math.round(value * 10) / 10), series: rejecting.map((each) => ({ label: each.plugin, color: each.color })) }),
    ];
    const isFilter = remembered.phase === "filter";
    replace(body,
      slow.some((each) => each.total) && el("div", { class: "charts" },
        el("section", {}, el("h2", {}, "Time in a cycle, p99"), charts[0].element, legend(slow)),
        isFilter ? el("section", {}, el("h2", {}, "Rejected nodes a second"), rejecting.length ? [charts[1].element, legend(rejecting)] : el("p", { class: "muted" }, "No filter plugin rejected a node in this time.")) : null),
      summary(mine, times, isFilter));
    const to = Date.now() / 1000;
    const from = to - WINDOWS.find(([value]) => value === remembered.since)[2];
    charts[0].show(times, slow.map((each) => each.p99), from, to);
    charts[1].show(times, rejecting.map((each) => each.rejected.map((value) => value / interval)), from, to);
    charts.forEach((chart) => chart.fit());
  }

  function tools() {
    return el("div", { class: "toolbar" }, el("h1", {}, "Plugins"),
      choice("Phase", [["filter", "Filter"], ["score", "Score"], ["bind", "Bind"]], "phase"),
      choice("Window", WINDOWS, "since"));
  }

  function choice(label, options, name) {
    return el("div", { class: "tabs", role: "group", "aria-label": label }, options.map(([value, title]) => el("button", { type: "button", "aria-pressed": String(remembered[name] === value), onclick: () => { remembered[name] = value; show(); } }, title)));
  }

  async function show() {
    replace(element, tools(), body);
    await load();
  }

  await show();
  return { element, shown: () => charts.forEach((chart) => chart.fit()), destroy() { clearTimeout(timer); charts.forEach((chart) => chart.destroy()); } };
}

function legend(series) {
  return el("ul", { class: "keyed" }, series.map((each) => { const dot = el("i", {}); dot.style.background = each.color; return el("li", {}, dot, each.plugin); }));
}

function summary(series, times, isFilter) {
  if (!times.length) return el("p", { class: "empty" }, "Nothing was noted in this time yet: the first interval ends a few seconds after the gateway began.");
  if (!series.length) return el("p", { class: "empty" }, "No plugin was asked in this time.");
  const rows = series.map((each) => {
    const failures = sum(each.failures);
    return [each.plugin, count(each.total), seconds(each.total ? each.spent / each.total : undefined), seconds(each.total ? most(each.p99) : undefined), ...(isFilter ? [count(sum(each.rejected))] : []), el("span", { class: failures ? "bad" : undefined }, count(failures))];
  });
  return plain("Plugins in this time", ["Plugin", "Cycles", "Mean", "p99, worst", ...(isFilter ? ["Rejected nodes"] : []), "Failures"], rows, [1, 2, 3, 4, 5]);
}
