"""What kube-scheduler makes of a filter answer."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from cli.conformance.findings import Exchange, Finding, Severity, failed_call
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.answers import FilterAnswer

LONG_REASON = 128
"""Characters: an event has 1,024 for all reasons, a pod's condition has all of them."""


def survivors(config: ExtenderConfig, answer: FilterAnswer) -> list[str]:
    """Return the nodes that pass, by the rules of kube-scheduler."""
    if config.node_cache_capable and answer.names is not None:
        return answer.names
    return [_name(node) for node in answer.nodes or ()]


def judge_filter(exchange: Exchange, answer: FilterAnswer) -> Iterator[Finding]:
    """Yield what is wrong with a filter answer that can be decoded."""
    if answer.error:
        yield from _error(exchange, answer.error)
        return
    sent, kept = exchange.request.names, survivors(exchange.config, answer)
    rejected = answer.failed | answer.unresolvable
    if wrong := next(_wrong_field(exchange, answer, set(sent) - set(rejected)), None):
        yield wrong
        return
    yield from _unknown(exchange, set(kept) - set(sent))
    yield from _accounting(exchange, kept, rejected)
    yield from _reasons(exchange, answer, rejected)
    if not exchange.config.node_cache_capable:
        yield from _altered(exchange, answer.nodes or [])


def _error(exchange: Exchange, text: str) -> Iterator[Finding]:
    severity, consequence = failed_call(exchange)
    yield exchange.finding(
        severity,
        f"takes Error as a failed call, not as a rejection: it {consequence}",
        check="filter-error" if exchange.check.startswith("recorded-") else "",
    )
    yield from mangled(exchange, text, "filter-error")


def mangled(exchange: Exchange, text: str, check: str) -> Iterator[Finding]:
    """Yield a finding for an Error that 1.30 takes as a format string."""
    if "%" in text:
        yield exchange.finding(
            Severity.STYLE, "prints Error as a format string, so that % garbles it", check=check,
            got=text, versions="1.30",
        )  # fmt: skip


def _wrong_field(exchange: Exchange, answer: FilterAnswer, expected: set[str]) -> Iterator[Finding]:
    """Yield a finding if survivors are expected, and kube-scheduler reads them elsewhere."""
    names_only = exchange.config.node_cache_capable
    if names_only and answer.names is None and answer.nodes:
        yield exchange.finding(
            Severity.WRONG,
            "takes whole nodes from an answer to names, and scores each as a node without pods",
            check="filter-field",
        )
    elif (answer.names if names_only else answer.nodes) is None and expected:
        right = "NodeNames" if names_only else "Nodes"
        yield exchange.finding(
            Severity.BREAKS,
            f"reads survivors from {right}, as in its request; that is null or absent, so all "
            "nodes are rejected",
            check="filter-field",
        )


def _unknown(exchange: Exchange, names: set[str]) -> Iterator[Finding]:
    if not names:
        return
    got, listed = f"{len(names)} nodes that were not sent, such as {min(names)!r}", "filter-subset"
    severity, consequence = failed_call(exchange)
    if exchange.config.node_cache_capable:
        text = f'refuses "a filtered node which is not found in the input node list": {consequence}'
        yield exchange.finding(severity, text, check=listed, got=got)
    else:
        text = "takes the node as it is, without its own filters"
        yield exchange.finding(Severity.WRONG, text, check=listed, got=got)


def _accounting(exchange: Exchange, kept: list[str], rejected: dict[str, str]) -> Iterator[Finding]:
    both = set(kept) & set(rejected)
    if both:
        yield exchange.finding(
            Severity.WRONG,
            "keeps a node that is among the survivors and among the rejected ones",
            check="filter-both",
            got=f"{min(both)!r} is kept and rejected: {rejected[min(both)]}",
        )
    twice = [name for name, count in Counter(kept).items() if count > 1]
    if twice and len(set(exchange.request.names)) == len(exchange.request.names):
        yield exchange.finding(
            Severity.STYLE,
            "has a node that is kept twice twice among the feasible ones",
            check="filter-duplicates",
            got=f"{twice[0]!r} twice",
        )
    silent = [name for name in exchange.request.names if name not in rejected and name not in kept]
    if silent:
        yield exchange.finding(
            Severity.IGNORED,
            "rejects the node without a reason: the numbers in the pod's event do not add up",
            check="filter-reasons",
            got=f"{len(silent)} of {len(exchange.request.names)} nodes neither kept nor rejected, "
            f"such as {silent[0]!r}",
        )


def _reasons(
    exchange: Exchange, answer: FilterAnswer, rejected: dict[str, str]
) -> Iterator[Finding]:
    for name, reason in rejected.items():
        if name in reason or len(reason) > LONG_REASON:
            yield exchange.finding(
                Severity.STYLE,
                "groups equal reasons only: one with a node's name, or a long one, fills the event "
                "and the pod's condition",
                check="filter-grouped-reasons",
                got=reason,
            )
            break
    if answer.failed:
        yield exchange.finding(
            Severity.STYLE,
            "tries to preempt pods on a node in FailedNodes, in vain, since its own filters pass; "
            "FailedAndUnresolvableNodes spares that",
            check="filter-unresolvable",
            got=f"{len(answer.failed)} nodes in FailedNodes",
        )


def _altered(exchange: Exchange, nodes: list[dict[str, Any]]) -> Iterator[Finding]:
    given = exchange.request.args["Nodes"]
    sent = {_name(node): node for node in (given or {}).get("items") or ()}
    for node in nodes:
        path = different(sent[_name(node)], node) if _name(node) in sent else ""
        if path:
            yield exchange.finding(
                Severity.WRONG,
                "scores the node with the fields of the answer; those that are missing are lost",
                check="filter-nodes-as-sent",
                got=f"{_name(node)!r} is not as it was sent: {path} differs",
            )
            return


def different(sent: Any, got: Any, path: str = "") -> str:
    """Return the path of a field that differs, "" if none does; absent, null and empty are one."""
    if isinstance(sent, dict) and isinstance(got, dict):
        below = (different(sent.get(k), got.get(k), f"{path}.{k}") for k in {*sent, *got})
        return next(filter(None, below), "")
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        pairs = enumerate(zip(sent, got, strict=True))
        below = (different(one, other, f"{path}[{index}]") for index, (one, other) in pairs)
        return next(filter(None, below), "")
    return "" if sent == got or (_is_empty(sent) and _is_empty(got)) else path.lstrip(".")


def _is_empty(value: Any) -> bool:
    return not any(map(_not_empty, value.values())) if isinstance(value, dict) else not value


def _not_empty(value: Any) -> bool:
    return not _is_empty(value)


def _name(node: dict[str, Any]) -> str:
    return str((node.get("metadata") or {}).get("name", ""))
