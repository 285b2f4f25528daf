// Which groups of pods wait for what, and since when.

import { get } from "../lib/api.js";
import { badge, el, note, polled, typed } from "../lib/dom.js";
import { age, count, date, path, plural } from "../lib/format.js";

const REFRESH = 5000; // milliseconds

export const groups = () => polled("Groups", REFRESH, async () => {
  const { items } = await get("../groups");
  return items.length ? el("ul", { class: "list" }, items.map(show)) : [note("No group was tried yet."), el("p", { class: "muted" }, "The filter plugin Gang places pods of a group all or none; its groups appear here with their first trial placement.")];
});

function show({ pods, more, group, bound, since, sentence, evidence, next }) {
  const runs = bound >= (group.minCount || 1);
  return el("li", {},
    el("div", { class: "grow" },
      el("b", {}, group.name), " ", runs ? badge("bound") : group.fits ? badge("binding") : badge("waits", "pending"),
      el("p", { class: "reason" }, sentence),
      [...evidence, ...next].length ? el("ul", { class: "why" }, [...evidence, ...next].map((each) => el("li", {}, typed(each)))) : null,
      group.domain ? el("p", { class: "muted" }, `${group.topologyKey.split("/").at(-1)} ${group.domain}`) : null,
      el("details", {}, el("summary", {}, plural(pods.length + more, "pod")), el("ul", { class: "labels" }, pods.map(([name, on]) => el("li", {}, el("a", { href: path("pod", ...name.split("/")) }, name), on ? [" on ", el("a", { href: path("node", on) }, on)] : " without a node")), more ? el("li", {}, `and ${count(more)} more`) : null))),
    since ? el("span", { class: "muted", title: date(since) }, `for ${age(since)}`) : null);
}
