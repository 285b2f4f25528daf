"""What is looked at in every prioritize answer."""

from collections.abc import Iterator

from cli.conformance.checks.check import Check, Probe


def prioritize_checks() -> Iterator[Check]:
    """Yield all checks of the verb."""
    rules = {
        "prioritize-decodes": "the answer is a list of hosts and scores",
        "prioritize-integers": 'scores are integers: not 7.0, not "7"',
        "prioritize-range": "scores are 0 to 10",
        "prioritize-unknown-hosts": "scores are for nodes that were sent",
        "prioritize-duplicates": "no host is listed twice",
        "prioritize-missing-hosts": "every node has a score, or none has",
    }
    for name, about in rules.items():
        yield Check(name=name, about=about, verb="prioritize")
    yield Check(
        name="prioritize-unfiltered",
        about="a pod that the extender was not asked to filter",
        verb="prioritize",
        run=unfiltered,
    )


async def unfiltered(probe: Probe) -> None:
    """A replica, or an extender that was started again, gets prioritize without filter."""
    request = probe.requests.scheduling("prioritize", probe.requests.pod("unfiltered"))
    await probe.ask("prioritize-unfiltered", request)
