// Who takes part, and whether each replica knows the cluster as it is.

import { get } from "../lib/api.js";
import { badge, el, facts, note, replace } from "../lib/dom.js";
import { count, plural, seconds } from "../lib/format.js";

const REFRESH = 2000; // milliseconds

export async function replicas() {
  const body = el("div", {});
  const open = new Set();

  async function load() {
    const answer = await get("../replicas");
    replace(body, summary(answer), answer.services.map((service) => show(service, open)), binder(answer.binder));
  }

  await load();
  const refresh = setInterval(() => { if (!document.hidden) load().catch((error) => replace(body, note(error.message, "bad"))); }, REFRESH);
  return { element: el("section", { class: "page" }, el("div", { class: "toolbar" }, el("h1", {}, "Replicas")), body), destroy: () => clearInterval(refresh) };
}

function summary({ counts, silentSeconds, term }) {
  const tile = (name, value, more = "") => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name), more && el("small", {}, more));
  return el("div", {}, el("div", { class: "tiles" },
    tile("nodes", count(counts.nodes)),
    tile("pods with a place", count(counts.pods), `${count(counts.assumed_pods)} assumed, ${count(counts.claims)} claimed`),
    tile("term", term.active ? String(term.epoch) : "none", term.active ? "this gateway decides" : term.problem),
    Object.entries(silentSeconds).map(([name, age]) => tile(`${name} last heard of`, age === null ? "never" : `${seconds(age)} ago`))));
}

function show({ service, problem, replicas: members }, open) {
  return el("section", {},
    el("h2", {}, service, " ", el("span", { class: "muted" }, plural(members.length, "replica"))),
    problem ? note(problem, members.length ? "" : "bad") : null,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ["Address", "Replica", "Changes to send", "Unanswered", "Plugins"].map((each, index) => el("th", { class: index > 1 && index < 4 ? "number" : "" }, each)))),
      el("tbody", {}, members.map((each) => el("tr", {},
        el("td", { class: "mono" }, each.place), el("td", { class: "mono" }, each.replica),
        el("td", { class: "number" }, each.behind ? count(each.behind) : "–"),
        el("td", { class: "number" }, each.unanswered ? count(each.unanswered) : "–"),
        el("td", {}, pluginsOf(each, `${service} ${each.place}`, open), Object.entries(each.problems).map(([plugin, text]) => note(`${plugin}: ${text}`, "bad")))))))));
}

function pluginsOf(replica, key, open) {
  const listed = el("details", { open: open.has(key) }, el("summary", {}, plural(replica.plugins.length, "plugin"), " ", el("span", { class: "muted mono" }, replica.version.slice(0, 8))), el("ul", { class: "labels" }, replica.plugins.map((each) => el("li", {}, each.name, each.origin && each.origin !== "built-in" ? ` (${each.origin})` : ""))));
  listed.addEventListener("toggle", () => (listed.open ? open.add(key) : open.delete(key)));
  return listed;
}

function binder({ place, note: text, problems }) {
  return el("section", {}, el("h2", {}, "binder ", text || problems.length ? badge("see below", "unschedulable") : badge("answers", "bound")), facts([["Address", el("span", { class: "mono" }, place)]]), text ? note(text, "bad") : null, problems.map((each) => note(each, "bad")));
}
