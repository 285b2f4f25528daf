// Who takes part, and whether each replica knows the cluster as it is.

import { get } from "../lib/api.js";
import { badge, el, facts, note, plain, polled, tile } from "../lib/dom.js";
import { count, plural, seconds } from "../lib/format.js";

const REFRESH = 2000; // milliseconds

export function replicas() {
  const open = new Set(); // lists of plugins
  return polled("Replicas", REFRESH, async () => {
    const { counts, silentSeconds, term, services, binder: third } = await get("../replicas");
    return [
      el("div", { class: "tiles" },
        tile("nodes", count(counts.nodes)),
        tile("pods on them", count(counts.pods), `${count(counts.assumed_pods)} assumed, ${count(counts.claims)} claimed`),
        tile("term", term.active ? String(term.epoch) : "none", term.active ? "this gateway decides" : term.problem)),
      services.map((service) => show(service, open)),
      binder(third),
      el("section", {}, el("h2", {}, "Watches of the API server"), plain("Watches", ["What", "Last heard of"], Object.entries(silentSeconds).map(([name, age]) => [el("span", { class: "long" }, name), age === null ? "never" : `${seconds(age)} ago`]), [1])),
    ];
  });
}

function show({ service, problem, replicas: members }, open) {
  return el("section", {},
    el("h2", {}, service, " ", el("span", { class: "muted" }, plural(members.length, "replica"))),
    problem ? note(problem, members.length ? "" : "bad") : null,
    plain(`Replicas of ${service}`, ["Address", "Replica", "Changes to send", "Unanswered", "Plugins"], members.map((each) => [
      el("span", { class: "mono" }, each.place), el("span", { class: "mono" }, each.replica), each.behind ? count(each.behind) : "–", each.unanswered ? count(each.unanswered) : "–",
      [pluginsOf(each, `${service} ${each.place}`, open), Object.entries(each.problems).map(([plugin, text]) => note(`${plugin}: ${text}`, "bad"))],
    ]), [2, 3]));
}

function pluginsOf(replica, key, open) {
  const listed = el("details", { open: open.has(key) }, el("summary", {}, plural(replica.plugins.length, "plugin"), " ", el("span", { class: "muted mono" }, replica.version.slice(0, 8))), el("ul", { class: "labels" }, replica.plugins.map((each) => el("li", {}, each.name, each.origin && each.origin !== "built-in" ? ` (${each.origin})` : ""))));
  listed.addEventListener("toggle", () => (listed.open ? open.add(key) : open.delete(key)));
  return listed;
}

function binder({ place, note: text, problems }) {
  return el("section", {}, el("h2", {}, "binder ", text || problems.length ? badge("see below", "unschedulable") : badge("answers", "bound")), facts([["Address", el("span", { class: "mono" }, place)]]), text ? note(text, "bad") : null, problems.map((each) => note(each, "bad")));
}
