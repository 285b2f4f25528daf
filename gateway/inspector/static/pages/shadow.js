// Where a second profile would have decided otherwise.

import { get } from "../lib/api.js";
import { el, facts, note, replace } from "../lib/dom.js";
import { age, count, path } from "../lib/format.js";

const REFRESH = 5000; // milliseconds

export async function shadow() {
  const body = el("div", {});

  async function load() {
    const answer = await get("../shadow").catch((error) => {
      if (error.status === 404) return { profiles: [] };
      throw error;
    });
    const profiles = answer.profiles || answer.items || [];
    replace(body, profiles.length ? profiles.map(show) : [note("No shadow is configured."), el("p", { class: "muted" }, "A shadow runs a second profile beside the live one on real traffic: give the policy a field `shadow`.")]);
  }

  await load();
  const refresh = setInterval(() => { if (!document.hidden) load().catch((error) => replace(body, note(error.message, "bad"))); }, REFRESH);
  return { element: el("section", { class: "page" }, el("div", { class: "toolbar" }, el("h1", {}, "Shadow")), body), destroy: () => clearInterval(refresh) };
}

function show(profile) {
  const { profile: name, shadow: against, agreement, disagreements = [], ...others } = profile;
  const counts = Object.entries(others).filter(([, value]) => typeof value === "number").map(([key, value]) => [words(key), count(value)]);
  return el("section", {},
    el("h2", {}, name, against ? ` and its shadow ${against}` : ""),
    facts([["Agreement", agreement === undefined || agreement === null ? "–" : `${(agreement * 100).toFixed(1)} %`], ...counts]),
    disagreements.length ? el("ul", { class: "list" }, disagreements.map((each) => el("li", {}, el("a", { class: "name", href: path("pod", each.namespace, each.pod, each.id || "") }, `${each.namespace}/${each.pod}`), el("span", { class: "grow" }, each.reason || (each.reasons || []).join("; "), each.live || each.shadow ? el("small", {}, ` ${each.live || "no node"} → ${each.shadow || "no node"}`) : ""), each.time && el("span", { class: "muted" }, age(each.time))))) : el("p", { class: "muted" }, "No disagreement yet."));
}

const words = (key) => key.replace(/([A-Z])/g, " $1").replace(/^./, (letter) => letter.toUpperCase());
