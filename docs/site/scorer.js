// What users look for comes before what is behind it: guides before references, contributors' pages
// last. A long query is mostly a message that somebody has seen: Troubleshooting lists them.
const QUERY = (new URLSearchParams(window.location.search).get("q") || "").trim();
const MESSAGE = QUERY.split(/\s+/).length > 3;
const BOOSTS = [
  [/^docs\/adr\/|^docs\/reference\/(protos|benchmarks)|^(CHANGELOG|CONTRIBUTING|SECURITY|CODE_OF_CONDUCT)/, -50],
  [/^docs\/how-to\/operate\/troubleshoot/, MESSAGE ? 30 : 4],
  [/^docs\/reference\/services\/binder/, MESSAGE ? 15 : 0],
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

// A message holds names that no page has, or that only examples have. So of many words not all must
// be on a page: those with most of them are found. Sphinx loads this file after its own.
const SHARE = 0.5; // of the words that the best page has
const strict = Search.performTermsSearch;
Search.performTermsSearch = (terms, excluded) => {
  if (terms.size < 4) return strict(terms, excluded);
  const pages = new Map();
  for (const term of terms) {
    for (const result of strict(new Set([term]), excluded)) {
      const [page, count] = pages.get(result[0]) || [result, 0];
      pages.set(result[0], [page, count + 1]);
    }
  }
  const most = Math.max(0, ...[...pages.values()].map(([, count]) => count));
  return [...pages.values()]
    .filter(([, count]) => count >= SHARE * most)
    .map(([page, count]) => page.with(4, count * Scorer.term));
};
