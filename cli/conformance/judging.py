"""What kube-scheduler does with an answer: with its HTTP, its form, and what it says."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cli.conformance.filtering import judge_filter, mangled
from cli.conformance.findings import UP_TO_GO_1_26, Exchange, Finding, Severity, failed_call
from sandbox.scheduler.extenders.answers import (
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
            findings.extend(judge_filter(exchange, filtered))
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
            findings.extend(mangled(exchange, error, "bind-decodes"))
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
