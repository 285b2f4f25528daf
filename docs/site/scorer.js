// What users look for comes before what is behind it: guides before references, contributors' pages
// last. A long query is mostly a message that somebody has seen: Troubleshooting lists them.
const QUERY = (new URLSearchParams(window.location.search).get("q") || "").trim();
const BOOSTS = [
  [/^docs\/adr\/|^docs\/reference\/(protos|benchmarks)|^(CHANGELOG|CONTRIBUTING|SECURITY|CODE_OF_CONDUCT)/, -50],
  [/^docs\/how-to\/operate\/troubleshoot/, QUERY.split(/\s+/).length > 3 ? 20 : 4],
  [/^docs\/how-to\/|^docs\/tutorial\//, 3],
  [/^docs\/reference\/api\//, -1],
];

var Scorer = {
  score: ([docname, , , , score]) =>
    BOOSTS.filter(([pattern]) => pattern.test(docname))
      .slice(0, 1)
      .reduce((sum, [, boost]) => sum + boost, score),
  objNameMatch: 21,
  objPartialMatch: 4,
  objPrio: { 0: 5, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
