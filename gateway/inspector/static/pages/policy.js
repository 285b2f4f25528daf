// The effective policy, each line with where it comes from.

import { get } from "../lib/api.js";
import { el, facts, note } from "../lib/dom.js";

export async function policy() {
  const { source, revision, note: refused, warnings, lines } = await get("../policy");
  const search = el("input", { type: "search", placeholder: "Search the policy  ( / )", "aria-label": "Search the policy" });
  const rows = lines.map((line, index) => el("tr", { class: line.line ? "given" : "", "data-text": `${line.text} ${line.origin}`.toLowerCase() }, el("td", { class: "ln" }, String(index + 1)), el("td", { class: "code" }, line.text), el("td", { class: "origin" }, line.origin)));
  const only = el("input", { type: "checkbox", id: "only", onchange: () => show() });
  const show = () => rows.forEach((row, index) => { row.hidden = !row.dataset.text.includes(search.value.toLowerCase()) || (only.checked && !lines[index].line); });
  search.addEventListener("input", show);
  const element = el("section", { class: "page" },
    el("div", { class: "toolbar" }, el("h1", {}, "Effective policy"), el("label", { class: "check" }, only, "only what the file sets"), search),
    facts([["File", el("span", { class: "mono" }, source)], ["Revision", el("span", { class: "mono" }, revision)]]),
    refused ? note(refused, "bad") : null,
    warnings.map((each) => note(each)),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Effective policy" }, el("table", { class: "policy" }, el("thead", { class: "hidden" }, el("tr", {}, el("th", {}, "Line"), el("th", {}, "Text"), el("th", {}, "Origin"))), el("tbody", {}, rows))));
  return { element, search };
}
