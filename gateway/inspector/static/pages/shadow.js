// Where a second profile would have decided otherwise.

import { get } from "../lib/api.js";
import { el, facts, note, plain, polled, tile } from "../lib/dom.js";
import { age, count, date, path, plural } from "../lib/format.js";

const REFRESH = 5000; // milliseconds
const SKIPS = { busy: "while another cycle ran", share: "as its share of the time was used up", changed: "as the cluster had changed meanwhile", "live failed": "as the live profile had no answer", stopped: "as the shadow had stopped" };
const KINDS = { winner: "best node", filter: "feasible nodes" };

export const shadow = () => polled("Shadow", REFRESH, async () => {
  const { profiles } = await get("../shadow").catch((error) => {
    if (error.status === 404) return { profiles: [] };
    throw error;
  });
  return profiles.length ? profiles.map(show) : [note("No shadow is configured."), el("p", { class: "muted" }, "A shadow runs a second profile beside the live one on real traffic. The field shadow of a profile configures it.")];
});

const percent = (share) => (share === null || share === undefined ? "–" : `${(share * 100).toFixed(1)} %`);

function show(report) {
  const skipped = Object.entries(report.skipped || {}).filter(([, cycles]) => cycles);
  return el("section", {},
    el("h2", {}, "Profile ", report.profile),
    el("div", { class: "tiles" },
      tile("agreement", percent(report.agreement), `${count(report.agreed)} of ${plural(report.compared, "cycle")}`),
      tile("with other feasible nodes", count(report.disagreedFilter)),
      tile("with another best node", count(report.disagreedWinner)),
      tile("of scheduling time", percent(report.share), `at most ${percent(report.maxShare)}`)),
    facts([["Since", date(report.since)], ["Policy", report.policyRevision], ["Not compared", skipped.map(([why, cycles]) => `${count(cycles)} ${SKIPS[why] || why}`).join(", ")], ["Failed", report.failed ? count(report.failed) : ""]]),
    report.lastFailure ? note(report.lastFailure, "bad") : null,
    report.stopped ? note("It has stopped itself after that; another policy lets it run again.", "bad") : null,
    report.reasons?.length ? plain(`Reasons of ${report.profile}`, ["Changes the", "Plugin", "Reason", "Cycles"], report.reasons.map((each) => [KINDS[each.kind] || each.kind, each.plugin, each.reason, count(each.cycles)]), [3]) : null,
    el("h2", {}, "Newest disagreements"),
    report.disagreements.length ? el("ul", { class: "list" }, report.disagreements.map(disagreement)) : el("p", { class: "muted" }, "None yet."));
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
