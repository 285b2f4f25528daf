"""Preempt requests with one peculiarity, and what is looked at in every preempt answer."""

from collections.abc import Iterator

from cli.conformance.checks.check import Check, Probe
from cli.conformance.findings import Severity

AFTER = "after 1.37"
"""kubernetes/kubernetes#135486 is in no release that is recorded."""


def preempt_checks() -> Iterator[Check]:
    """Yield all checks of the verb."""
    rules = {
        "preempt-decodes": "the answer is an ExtenderPreemptionResult as Go decodes it",
        "preempt-null": "no null where kube-scheduler dereferences it",
        "preempt-field": "victims are in NodeNameToMetaVictims, in both modes",
        "preempt-candidates": "nodes were sent",
        "preempt-victims": "victims were sent, and a node has at least one",
        "preempt-order": "victims stay in their order",
    }
    for name, about in rules.items():
        yield Check(name=name, about=about, verb="preempt")
    yield Check(
        name="preempt-unfiltered",
        about="two candidates for a pod that the extender was not asked to filter",
        verb="preempt",
        run=unfiltered,
    )
    yield Check(
        name="preempt-empty-victims",
        about="a candidate whose list of victims is empty, and one where it is null (#135486)",
        verb="preempt",
        run=empty_victims,
    )


async def unfiltered(probe: Probe) -> None:
    """All nodes may fail kube-scheduler's own filters: then preempt is the first call."""
    nodes = probe.requests.nodes
    victims = {nodes[0]: ["victim-1", "victim-2"], nodes[-1]: ["victim-3"]}
    await probe.ask("preempt-unfiltered", probe.requests.preemption({**victims}))


async def empty_victims(probe: Probe) -> None:
    """Versions after 1.37 send candidates that only the extender rejected."""
    nodes = probe.requests.nodes
    empty: tuple[list[str] | None, ...] = ([], None)
    for pods in empty:
        request = probe.requests.preemption({nodes[0]: pods, nodes[-1]: ["victim-3"]})
        answer = await probe.send(request)
        if answer.failure or answer.status != 200:
            probe.report(
                "preempt-empty-victims",
                request,
                answer,
                Severity.BREAKS,
                "gives up preemption for the pod, also on the nodes where it would help",
                versions=AFTER,
            )
        else:
            await probe.ask("preempt-empty-victims", request)
