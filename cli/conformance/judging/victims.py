"""What kube-scheduler makes of a preempt answer."""

from collections.abc import Iterator, Mapping
from typing import Any

from cli.conformance.findings import Finding, Severity
from cli.conformance.judging.exchanges import Exchange, failed_call

Victims = Mapping[str, list[str]]

NULL = "dereferences the null in its scheduling goroutine: the process panics"


def judge_victims(exchange: Exchange, victims: Victims, value: Any) -> Iterator[Finding]:
    """Yield what is wrong with a preempt answer that can be decoded."""
    sent = exchange.request.victims
    if sent and not victims and _has_whole_victims(value):
        yield exchange.finding(
            Severity.BREAKS,
            "reads NodeNameToMetaVictims only, in both modes: it finds no candidate",
            check="preempt-field",
        )
    for node, uids in victims.items():
        if node not in sent:
            yield exchange.finding(
                Severity.WRONG,
                "evicts pods of a node that was no candidate, without trying whether that helps; "
                "preemption fails if there is no such node",
                check="preempt-candidates",
                got=f"victims on {node!r}, which was not sent",
            )
        else:
            yield from _judge_node(exchange, node, sent[node], uids)


def _judge_node(
    exchange: Exchange, node: str, sent: list[str], uids: list[str]
) -> Iterator[Finding]:
    severity, consequence = failed_call(exchange)
    if sent and not uids:
        if exchange.config.ignorable:
            consequence = "drops the node, since the extender is ignorable"
        yield exchange.finding(
            severity,
            f"expects at least one victim on a node: it {consequence}",
            check="preempt-victims",
            got=f"no victim on {node!r}, where {len(sent)} were sent",
        )
    if unknown := [uid for uid in uids if uid not in sent]:
        yield exchange.finding(
            severity,
            f"takes no victim that is not on the node at that time: it {consequence}",
            check="preempt-victims",
            got=f"the victim {unknown[0]!r} on {node!r}, which was not sent",
        )
    elif [uid for uid in sent if uid in uids] != uids:
        yield exchange.finding(
            Severity.WRONG,
            "takes the first victim as the one with the highest priority when it compares nodes",
            check="preempt-order",
            got=f"the victims on {node!r} in another order, or twice",
        )


def _has_whole_victims(value: Any) -> bool:
    keys = {key.lower() for key, item in value.items() if item} if isinstance(value, dict) else ()
    return "nodenametovictims" in keys
