// What plugins would answer about a pod now with another weight, more nodes, or without a plugin.

import { get, joined } from "../lib/api.js";
import { el, facts, note, replace } from "../lib/dom.js";
import { count, ranked, score } from "../lib/format.js";

export function whatIf(namespace, pod) {
  const base = `../simulate/${joined(namespace, pod)}`;
  const field = (title, properties) => el("input", { "aria-label": title, ...properties });
  const weighed = el("select", { "aria-label": "Score plugin" });
  const weight = field("Weight", { type: "number", min: 0, max: 1000 });
  const nodes = field("More nodes", { type: "number", min: 0, max: 100, value: 0 });
  const like = field("Node to copy", { type: "text", list: "copied" });
  const copied = el("datalist", { id: "copied" });
  const off = el("select", { "aria-label": "Plugin that is off" });
  const result = el("div", {});
  const form = el("div", { class: "toolbar", hidden: true },
    el("label", {}, "weight of", weighed, "is", weight), el("label", {}, nodes, "more nodes like", like, copied), el("label", {}, "leave out", off),
    el("button", { type: "button", onclick: () => compare() }, "Compare"));
  let plugins;

  async function compare() {
    const asked = new URLSearchParams();
    if (plugins && weight.value && Number(weight.value) !== plugins.score[weighed.value]) asked.append("weight", `${weighed.value}:${weight.value}`);
    if (Number(nodes.value)) { asked.append("nodes", nodes.value); asked.append("like", like.value); }
    if (off.value) asked.append("off", off.value);
    const answer = await get(`${base}?${asked}`).catch((error) => { replace(result, note(error.message, "bad")); });
    if (!answer) return;
    if (!plugins) await offer(answer.plugins);
    const { before, after, profile } = answer;
    replace(result, el("div", { class: "sides" }, side(`Now, by profile ${profile}`, before), [...asked].length && side("With the change", after, before)));
  }

  async function offer(found) {
    plugins = found;
    const choose = (names) => names.map((name) => el("option", { value: name }, name));
    const scores = Object.keys(found.score);
    replace(weighed, choose(scores));
    const shown = () => { weight.value = found.score[weighed.value] ?? ""; };
    weighed.addEventListener("change", shown);
    shown();
    replace(off, el("option", { value: "" }, "nothing"), choose([...new Set([...Object.keys(found.filter), ...scores])]));
    const { items } = await get("../nodes?limit=200").catch(() => ({ items: [] }));
    replace(copied, choose(items.map((node) => node.name)));
    like.value = items[0]?.name || "";
    form.hidden = false;
  }

  const element = el("details", { class: "whatif" }, el("summary", {}, "What if"), form, result);
  element.addEventListener("toggle", () => { if (element.open && !plugins) compare(); });
  return element;
}

function side(title, found, before = found) {
  const first = (one) => one.best || (one.top.length ? "several tie" : "none known");
  const mark = (text, other) => el("span", { class: text === other ? "" : "other" }, text);
  const feasible = (one) => `${count(one.feasible)} of ${count(one.nodes)}`;
  const rejected = (one) => one.rejected.map((each) => `${count(each.nodes)} ${each.reason} (${each.plugin})`).join(", ");
  return el("section", {}, el("h2", {}, title), el("p", { class: "reason" }, found.words[0] || ""),
    facts([["Best node", mark(first(found), first(before))], ["Feasible", mark(feasible(found), feasible(before))], ["Rejected", rejected(found) && mark(rejected(found), rejected(before))]]),
    best(found.top));
}

// The best nodes with what each plugin gives them.
export function best(top) {
  return top.length ? el("ol", { class: "best" }, ranked(top).map((each) => el("li", { value: each.rank }, el("b", {}, each.node), ` ${score(each.total)} `, each.tied && "(tied) ", el("small", {}, (each.plugins || []).map((one) => `${one.plugin} ${score(one.normalized)} × ${one.weight}`).join(", "))))) : null;
}
