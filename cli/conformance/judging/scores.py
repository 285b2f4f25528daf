"""What kube-scheduler makes of a prioritize answer."""

from collections import Counter
from collections.abc import Iterator

from cli.conformance.findings import Finding, Severity
from cli.conformance.judging.exchanges import Exchange

FACTOR = 10
"""MaxNodeScore / MaxExtenderPriority: what kube-scheduler multiplies a score by."""


def judge_scores(exchange: Exchange, scores: list[tuple[str, int]]) -> Iterator[Finding]:
    """Yield what is wrong with a prioritize answer that can be decoded."""
    outside = [(host, score) for host, score in scores if not 0 <= score <= exchange.best_score]
    if outside:
        host, score = outside[0]
        points = score * max(exchange.config.weight, 1) * FACTOR
        yield exchange.finding(
            Severity.WRONG,
            f"clamps nothing: {score} counts as {points:,} points, where no in-tree plugin with "
            "weight 1 has more than 100",
            check="prioritize-range",
            got=f"{host!r} has {score}, and {exchange.best_score} is the most",
        )
    sent = set(exchange.request.names)
    unknown = [host for host, _ in scores if host not in sent]
    if unknown:
        yield exchange.finding(
            Severity.IGNORED,
            "drops scores of nodes that it did not ask about",
            check="prioritize-unknown-hosts",
            got=f"a score for {unknown[0]!r}, which was not sent",
        )
    yield from _counts(exchange, Counter(host for host, _ in scores))


def _counts(exchange: Exchange, counts: Counter[str]) -> Iterator[Finding]:
    names = exchange.request.names
    twice = [host for host, count in counts.items() if count > names.count(host) > 0]
    if twice:
        yield exchange.finding(
            Severity.WRONG,
            "adds up all scores of a host that is listed several times",
            check="prioritize-duplicates",
            got=f"{twice[0]!r} {counts[twice[0]]} times",
        )
    missing = [name for name in names if not counts[name]]
    if counts and missing:
        yield exchange.finding(
            Severity.STYLE,
            "counts 0 for a node without a score; since 1.36 it also comes last among equal nodes",
            check="prioritize-missing-hosts",
            got=f"no score for {len(missing)} of {len(names)} nodes, such as {missing[0]!r}",
        )
