"""Our mirrors of in-tree filter plugins reject what real kube-schedulers rejected, and why."""

from collections import Counter
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from moorage import Nodes, Pod
from moorage.execution import EnabledPlugin, FilterRun, Profile, Supervisor
from moorage.models import Container, Resources
from services.filter.engine import run_filters
from services.filter.plugins import BUILT_INS
from tests.golden import VERSIONS, Refused, cluster, filtered, parse, scored

UNMET = "example.com/unobtainable"
FIT = "NodeResourcesFit"
ORDER = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "VolumeRestrictions",
    "PodTopologySpread",
    "InterPodAffinity",
    FIT,
)


async def run(names: Iterable[str], pod: Pod, nodes: Nodes) -> FilterRun:
    kinds = {kind.name: kind for kind in BUILT_INS}
    enabled = tuple(EnabledPlugin(plugin=kinds[name]()) for name in dict.fromkeys(names))
    return await run_filters(Profile(name="golden", plugins=enabled), pod, nodes, Supervisor())


def feasible(outcome: FilterRun, nodes: Nodes) -> list[str]:
    return sorted(n for n, code in zip(nodes.names, outcome.codes, strict=True) if code == 0)


def refused(outcome: FilterRun) -> Refused:
    rejections = [outcome.reasons[code - 1] for code in outcome.codes]
    reasons = Counter(part for each in rejections for part in each.text.split(", "))
    return Refused(reasons, sum(each.unresolvable for each in rejections))


def with_unmet_request(pod: Pod) -> Pod:
    first, *others = pod.spec.containers
    requests = Resources(requests={**first.resources.requests, UNMET: "1"})
    changed: tuple[Container, ...] = (replace(first, resources=requests), *others)
    return replace(pod, spec=replace(pod.spec, containers=changed))


@pytest.mark.parametrize("version", VERSIONS)
async def test_verdicts_are_those_of_kube_scheduler(
    version: str, subtests: pytest.Subtests
) -> None:
    for case in filtered(version):
        with subtests.test(str(case)):
            nodes = cluster(case.version, case.cluster)
            alone = await run((case.plugin, FIT), case.pod, nodes)
            assert feasible(alone, nodes) == case.feasible
            if case.alone:
                assert refused(alone) == parse(case.alone)
            filled = await run((case.plugin, FIT), with_unmet_request(case.pod), nodes)
            assert refused(filled) == parse(case.filled)


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_filters_together_pass_the_same_nodes(
    version: str, subtests: pytest.Subtests
) -> None:
    for case in scored(version):
        with subtests.test(str(case)):
            nodes = cluster(case.version, case.cluster)
            outcome = await run(ORDER, case.pod, nodes)
            assert feasible(outcome, nodes) == case.feasible
            if case.message:
                assert refused(outcome) == parse(case.message)


def test_every_plugin_rejects_something() -> None:
    told = {case.plugin for case in filtered() if len(parse(case.filled).reasons) > 1}
    assert told == set(ORDER)
