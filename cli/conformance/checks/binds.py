"""Bind requests for pods that do not exist."""

import asyncio
from collections.abc import Iterator

from cli.conformance.checks.check import Check, Probe
from cli.conformance.exchange import Request
from cli.conformance.findings import Severity
from cli.conformance.requests import PREFIX, written

MANY = 50
"""Binds at the same time: kube-scheduler has no limit, and one connection for each."""


def bind_checks() -> Iterator[Check]:
    """Yield all checks of the verb."""
    yield Check(
        name="bind-decodes",
        about="the answer is an ExtenderBindingResult as Go decodes it",
        verb="bind",
    )
    yield Check(
        name="bind-missing-pod",
        about="the recorded binds, of pods that do not exist: Error must be set",
        verb="bind",
        run=missing_pod,
    )
    yield Check(
        name="bind-repeated",
        about="the same bind twice: the same answer",
        verb="bind",
        run=repeated,
    )
    yield Check(
        name="bind-concurrent",
        about=f"{MANY} binds at the same time, each on its own connection",
        verb="bind",
        run=concurrent,
    )


async def missing_pod(probe: Probe) -> None:
    """A success without a bind leaves the pod assumed for ever."""
    for version in probe.requests.versions():
        for recorded in probe.requests.recorded(version, "bind"):
            salt = probe.requests.salt
            args = recorded.args | {
                "PodName": f"{PREFIX}{salt}-{recorded.args['PodName']}",
                "PodUID": f"{salt}-{recorded.args['PodUID']}",
            }
            await _bind(probe, "bind-missing-pod", Request("bind", written(args)))


async def repeated(probe: Probe) -> None:
    """After an answer that was lost, kube-scheduler binds the pod again."""
    request = probe.requests.binding()
    answers = [await _bind(probe, "bind-repeated", request) for _ in range(2)]
    if None not in answers and bool(answers[0]) != bool(answers[1]):
        probe.report(
            "bind-repeated",
            request,
            await probe.send(request),
            Severity.BREAKS,
            "takes the second answer for the truth: the pod is bound twice or forgotten",
            got=f"{answers[0]!r}, then {answers[1]!r}",
        )


async def concurrent(probe: Probe) -> None:
    """Binding cycles run beside each other and beside the next pods' scheduling cycles."""
    await asyncio.gather(
        *(
            _bind(probe, "bind-concurrent", probe.requests.binding(number))
            for number in range(1, MANY + 1)
        )
    )


async def _bind(probe: Probe, check: str, request: Request) -> str | None:
    """Return the Error of a bind; None if the call failed."""
    answer = await probe.ask(check, request)
    if answer == "":
        probe.report(
            "bind-missing-pod",
            request,
            await probe.send(request),
            Severity.BREAKS,
            "takes the pod for bound and keeps it assumed on the node until it is deleted or "
            "kube-scheduler starts again",
            got="no Error, though there is no such pod",
        )
    return answer if isinstance(answer, str) else None
