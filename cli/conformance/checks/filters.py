"""Filter requests with one peculiarity, and what is looked at in every filter answer."""

from collections.abc import Iterator

from cli.conformance.checks.check import Check, Probe
from cli.conformance.exchange import Answer, Object, Request
from cli.conformance.findings import Severity
from cli.conformance.requests import written
from sandbox.scheduler.extenders.answers import (
    AnswerError,
    FilterAnswer,
    decode_answer,
    filter_answer,
)

NO_SUCH_NODE = "moorage-conformance-no-such-node"


def filter_checks() -> Iterator[Check]:
    """Yield all checks of the verb."""
    rules = {
        "filter-decodes": "the answer is an ExtenderFilterResult as Go decodes it",
        "filter-error": "Error is for failures, not for rejections",
        "filter-field": "survivors are in the field that the request used",
        "filter-subset": "survivors were sent",
        "filter-reasons": "every node is a survivor or has a reason",
        "filter-both": "no survivor is rejected too",
        "filter-duplicates": "no survivor is listed twice",
        "filter-grouped-reasons": "reasons are short and without the node's name",
        "filter-unresolvable": "rejections are in FailedAndUnresolvableNodes",
        "filter-nodes-as-sent": "whole nodes come back as they were sent",
    }
    probes = {
        "filter-unknown-node": (
            "a node that the extender's cache does not have yet",
            unknown_node,
        ),
        "filter-one-node": ("one node only, as for a nominated pod", one_node),
        "filter-repeated": ("the same request twice: reasons stay as they are", repeated),
        "filter-group": ("four pods of a group, each filtered again, before any bind", group),
        "filter-no-nodes": ("an empty list, both fields null, both fields absent", no_nodes),
    }
    for name, about in rules.items():
        yield Check(name=name, about=about, verb="filter")
    for name, (about, run) in probes.items():
        yield Check(name=name, about=about, verb="filter", run=run)


async def unknown_node(probe: Probe) -> None:
    """The informers of kube-scheduler and extender run at their own pace."""
    names = [*probe.requests.nodes, NO_SUCH_NODE]
    await probe.ask("filter-unknown-node", probe.requests.scheduling("filter", names=names))


async def one_node(probe: Probe) -> None:
    """A pod with a nominated node is filtered for it alone first."""
    names = probe.requests.nodes[:1]
    await probe.ask("filter-one-node", probe.requests.scheduling("filter", names=names))


async def repeated(probe: Probe) -> None:
    """Two filter calls of one cycle; an unstable reason makes a pod's condition change for ever."""
    request = probe.requests.scheduling("filter", names=[*probe.requests.nodes, NO_SUCH_NODE])
    answers = [await probe.send(request) for _ in range(2)]
    readings = [read_filter(answer) for answer in answers]
    if all(readings):
        one, other = (reading.failed | reading.unresolvable for reading in readings if reading)
        changed = [name for name in one if name in other and one[name] != other[name]]
        if changed:
            probe.report(
                "filter-repeated",
                request,
                answers[1],
                Severity.STYLE,
                "writes the pod's condition again for each new text, and that update makes it try "
                "the pod again",
                got=f"{one[changed[0]]!r}, then {other[changed[0]]!r}",
            )


async def group(probe: Probe) -> None:
    """Pod groups (GenericWorkload) are tried on hypothetical states, with no hint of that."""
    fields = {"schedulingGroup": {"podGroupName": "moorage-conformance"}}
    pods = [probe.requests.pod(f"member-{number}", **fields) for number in range(4)]
    for pod in pods * 2:
        await probe.cycle("filter-group", pod)


async def no_nodes(probe: Probe) -> None:
    """kube-scheduler never sends this, autoscalers and simulators do."""
    pod = probe.requests.pod()
    names_only = probe.client.config.node_cache_capable
    empty: Object = {"NodeNames": [], "Nodes": None} if names_only else {"Nodes": {"items": []}}
    for fields in (empty, {"NodeNames": None, "Nodes": None}, {}):
        request = Request("filter", written({"Pod": pod, **fields}))
        answer = await probe.send(request)
        if answer.failure or answer.status >= 500:
            probe.report(
                "filter-no-nodes",
                request,
                answer,
                Severity.STYLE,
                "never sends this; other callers do, such as simulators and forks of the cluster "
                "autoscaler",
            )


def read_filter(answer: Answer) -> FilterAnswer | None:
    """Return a filter answer as kube-scheduler reads it, None if it cannot."""
    if answer.failure or answer.status != 200:
        return None
    try:
        return filter_answer(decode_answer(answer.body))
    except AnswerError:
        return None
