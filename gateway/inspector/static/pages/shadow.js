// Where a second profile would have decided otherwise.

import { get } from "../lib/api.js";
import { el, facts, note, replace } from "../lib/dom.js";
import { age, count, date, path, plural } from "../lib/format.js";

const REFRESH = 5000; // milliseconds

export async function shadow() {
  const body = el("div", {});

  async function load() {
    const { profiles } = await get("../shadow").catch((error) => {
      if (error.status === 404) return { profiles: [] };
      throw error;
    });
    replace(body, profiles.length ? profiles.map(show) : [note("No shadow is configured."), el("p", { class: "muted" }, "A shadow runs a second profile beside the live one on real traffic. The field shadow of a profile configures it.")]);
  }

  await load();
  const refresh = setInterval(() => { if (!document.hidden) load().catch((error) => replace(body, note(error.message, "bad"))); }, REFRESH);
  return { element: el("section", { class: "page" }, el("div", { class: "toolbar" }, el("h1", {}, "Shadow")), body), destroy: () => clearInterval(refresh) };
}

const percent = (share) => (share === null || share === undefined ? "–" : `${(share * 100).toFixed(1)} %`);

function show(report) {
  const tile = (name, value, more = "") => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name), more && el("small", {}, more));
  const skipped = Object.entries(report.skipped || {}).filter(([, cycles]) => cycles);
  return el("section", {},
    el("h2", {}, "Profile ", report.profile),
    el("div", { class: "tiles" },
      tile("agreement", percent(report.agreement), `${count(report.agreed)} of ${plural(report.compared, "cycle")}`),
      tile("other feasible nodes", count(report.disagreedFilter)),
      tile("another best node", count(report.disagreedWinner)),
      tile("of the time", percent(report.share), `at most ${percent(report.maxShare)}`)),
    facts([["Since", date(report.since)], ["Policy", report.policyRevision], ["Skipped", skipped.map(([why, cycles]) => `${why} ${count(cycles)}`).join(", ")], ["Failed", report.failed ? count(report.failed) : ""]]),
    report.lastFailure ? note(report.lastFailure, "bad") : null,
    report.stopped ? note("It has stopped itself after that; another policy lets it run again.", "bad") : null,
    reasons(report.reasons || []),
    el("h2", {}, "Newest disagreements"),
    report.disagreements.length ? el("ul", { class: "list" }, report.disagreements.map(disagreement)) : el("p", { class: "muted" }, "None yet."));
}

function reasons(found) {
  if (!found.length) return null;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, ["In", "Plugin", "Reason", "Cycles"].map((each, index) => el("th", { class: index === 3 ? "number" : "" }, each)))),
    el("tbody", {}, found.map((each) => el("tr", {}, el("td", {}, each.kind), el("td", {}, each.plugin), el("td", {}, each.reason), el("td", { class: "number" }, count(each.cycles)))))));
}

function disagreement(each) {
  const winners = each.live || each.shadow ? `${each.live || "no node"} → ${each.shadow || "no node"}` : "";
  const feasible = each.feasible === each.shadowFeasible ? "" : `${count(each.feasible)} → ${plural(each.shadowFeasible, "feasible node")}`;
  return el("li", {},
    el("a", { class: "name", href: path("pod", each.namespace, each.pod, each.id) }, `${each.namespace}/${each.pod}`),
    el("span", { class: "mono" }, [winners, feasible].filter(Boolean).join(", ")),
    el("span", { class: "grow" }, (each.reasons || []).join("; ")),
    el("span", { class: "muted" }, age(each.time)));
}
