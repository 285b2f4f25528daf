"""Sends what real kube-schedulers sent, in the same order."""

from collections.abc import Iterator

from cli.conformance.checks.check import Check, Probe, Run
from cli.conformance.recordings import recording_names


def recorded_checks() -> Iterator[Check]:
    """Yield a check for each version that is recorded."""
    for version in dict.fromkeys(name.rpartition("-")[0] for name in recording_names()):
        yield Check(
            name=f"recorded-{version}",
            about=f"all requests that kube-scheduler {version} sent when it was recorded",
            run=_replay(version),
        )


def _replay(version: str) -> Run:
    async def replay(probe: Probe) -> None:
        verbs = probe.offered("filter", "prioritize", "preempt")
        for request in probe.requests.recorded(version, *verbs):
            await probe.ask(f"recorded-{version}", request)

    return replay
