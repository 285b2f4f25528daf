"""What kube-scheduler does with an answer: with its HTTP, its form, and what it says."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cli.conformance.findings import UP_TO_GO_1_26, Exchange, Finding, Severity, failed_call
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.client import (
    AnswerError,
    FilterAnswer,
    bind_answer,
    decode_answer,
    filter_answer,
    preempt_answer,
    score_answer,
)

Reading = FilterAnswer | list[tuple[str, int]] | dict[str, list[str]] | str
"""A decoded answer: of filter, prioritize, preempt, or the Error of bind."""

Victims = Mapping[str, list[str]]

SCORE = re.compile(r"HostPriority\.Score|cannot unmarshal (?:number|string|bool)")

NULL = "dereferences the null in its scheduling goroutine: the process panics"

FACTOR = 10
"""MaxNodeScore / MaxExtenderPriority: what kube-scheduler multiplies a score by."""

SLOW_SHARE = 0.8
"""A call that takes more of httpTimeout is reported."""

LONG_REASON = 128
"""Characters: an event has 1,024 for all reasons, a pod's condition has all of them."""


def judge(exchange: Exchange, findings: list[Finding]) -> Reading | None:
    """Add what is wrong with an answer to *findings*.

    Returns:
        The decoded answer, None if kube-scheduler would take the call as failed.
    """
    if failure := _call_failure(exchange):
        findings.append(failure)
        return None
    findings.extend(_framing(exchange))
    try:
        return _read(exchange, decode_answer(exchange.answer.body), findings)
    except AnswerError as error:
        findings.append(_undecodable(exchange, str(error)))
        return None


def _read(exchange: Exchange, value: Any, findings: list[Finding]) -> Reading:
    match exchange.request.verb:
        case "filter":
            filtered = filter_answer(value)
            findings.extend(_judge_filter(exchange, filtered))
            return filtered
        case "prioritize":
            scores = score_answer(value)
            findings.extend(_judge_scores(exchange, scores))
            return scores
        case "preempt":
            victims = preempt_answer(value)
            findings.extend(_judge_victims(exchange, victims, value))
            return victims
        case "bind":
            error = bind_answer(value)
            findings.extend(_mangled(exchange, error, "bind-decodes"))
            return error


def _undecodable(exchange: Exchange, error: str) -> Finding:
    verb, (severity, consequence) = exchange.request.verb, failed_call(exchange)
    if verb == "preempt" and "crashes a real kube-scheduler" in error:
        return exchange.finding(Severity.BREAKS, NULL, check="preempt-null")
    check = f"{verb}-decodes"
    if verb == "prioritize" and SCORE.search(error):
        check = "prioritize-integers"
    text = f"cannot decode the answer ({error}): it {consequence}"
    return exchange.finding(severity, text, check=check)


def _call_failure(exchange: Exchange) -> Finding | None:
    """Return a finding if kube-scheduler gets no answer with status 200."""
    answer, (severity, consequence) = exchange.answer, failed_call(exchange)
    if answer.failure:
        return exchange.finding(severity, f"has no answer and {consequence}")
    if answer.status in (301, 302, 303):
        return exchange.finding(
            severity, f"follows the redirect with a GET without the body, and {consequence}"
        )
    if answer.status != 200:
        text = f"reads no body of a status {answer.status}, and {consequence}"
        if answer.status in (404, 405):
            text += " (if the extender has no such verb, leave it out of --verbs)"
        return exchange.finding(severity, text)
    return None


def _framing(exchange: Exchange) -> Iterator[Finding]:
    """Yield what is unusual about the HTTP of an answer."""
    answer, headers = exchange.answer, exchange.answer.headers
    if answer.redirects:
        yield exchange.finding(
            Severity.STYLE,
            "sends the request again after each redirect",
            check="http-redirect",
            got=f"redirects {', '.join(map(str, answer.redirects))}",
        )
    if headers.get("Connection", "").lower() == "close":
        yield exchange.finding(
            Severity.STYLE, "opens a new connection for each call", check="http-keep-alive",
            got="Connection: close",
        )  # fmt: skip
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        yield exchange.finding(
            Severity.STYLE,
            "may not read the last chunk, and then closes the connection instead of using it again",
            check="http-framing",
            got="Transfer-Encoding: chunked",
            versions=UP_TO_GO_1_26,
        )
    limit = exchange.config.timeout
    if limit and answer.seconds > SLOW_SHARE * limit:
        yield exchange.finding(
            Severity.STYLE,
            f"gives up after {limit:g} s; a busier machine is over that",
            check="http-in-time",
            got=f"an answer after {answer.seconds:.2f} s",
        )


# ---- filter


def survivors(config: ExtenderConfig, answer: FilterAnswer) -> list[str]:
    """Return the nodes that pass, by the rules of kube-scheduler."""
    if config.node_cache_capable and answer.names is not None:
        return answer.names
    return [_name(node) for node in answer.nodes or ()]


def _judge_filter(exchange: Exchange, answer: FilterAnswer) -> Iterator[Finding]:
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
    yield from _mangled(exchange, text, "filter-error")


def _mangled(exchange: Exchange, text: str, check: str) -> Iterator[Finding]:
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


# ---- prioritize


def _judge_scores(exchange: Exchange, scores: list[tuple[str, int]]) -> Iterator[Finding]:
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


# ---- preempt


def _judge_victims(exchange: Exchange, victims: Victims, value: Any) -> Iterator[Finding]:
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
