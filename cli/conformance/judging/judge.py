"""Judges one exchange, and keeps what was found."""

import re
from dataclasses import dataclass
from typing import Any

from cli.conformance.exchange import Answer, Request
from cli.conformance.findings import Finding, Severity
from cli.conformance.judging.calls import call_failure, framing
from cli.conformance.judging.exchanges import Exchange, failed_call
from cli.conformance.judging.filters import judge_filter, mangled
from cli.conformance.judging.scores import judge_scores
from cli.conformance.judging.victims import NULL, judge_victims
from sandbox.scheduler.config import ExtenderConfig
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

SCORE = re.compile(r"HostPriority\.Score|cannot unmarshal (?:number|string|bool)")


@dataclass(frozen=True, slots=True)
class Judge:
    """Finds what kube-scheduler would do with answers.

    Args:
        config: The extender's entry.
        best_score: The highest score that it documents.
        findings: Where findings are added.
    """

    config: ExtenderConfig
    best_score: int
    findings: list[Finding]

    def judge(self, check: str, request: Request, answer: Answer) -> Reading | None:
        """Return the decoded answer, or None if kube-scheduler would take the call as failed."""
        exchange = Exchange(
            config=self.config,
            best_score=self.best_score,
            check=check,
            request=request,
            answer=answer,
        )
        if failure := call_failure(exchange):
            self.findings.append(failure)
            return None
        self.findings.extend(framing(exchange))
        try:
            value = decode_answer(answer.body)
            return self._read(exchange, value)
        except AnswerError as error:
            self.findings.append(_undecodable(exchange, str(error)))
            return None

    def _read(self, exchange: Exchange, value: Any) -> Reading:
        match exchange.request.verb:
            case "filter":
                filtered = filter_answer(value)
                self.findings.extend(judge_filter(exchange, filtered))
                return filtered
            case "prioritize":
                scores = score_answer(value)
                self.findings.extend(judge_scores(exchange, scores))
                return scores
            case "preempt":
                victims = preempt_answer(value)
                self.findings.extend(judge_victims(exchange, victims, value))
                return victims
            case "bind":
                error = bind_answer(value)
                self.findings.extend(mangled(exchange, error, "bind-decodes"))
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
