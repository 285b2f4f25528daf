"""Traces of cycles and binds, from real processes to an OpenTelemetry collector."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.collector import Collector, ReceivedSpan, collecting
from tests.live_api import until
from tests.scenarios.objects import node, pod
from tests.scenarios.planes import EmbeddedPlane
from tests.scenarios.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

BATCHES = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> AsyncIterator[World]:
    """A world of which every cycle is traced."""
    plane = EmbeddedPlane(tmp_path_factory.mktemp("tracing"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in BATCHES.items():
            patch.setenv(name, value)
        async with World.started(
            plane, options=[f"--trace-endpoint={collector.url}"], gateway=["--trace-ratio=1"]
        ) as started:
            await started.create(node("n1"), node("n2"))
            yield started


def parents(spans: list[ReceivedSpan], child: ReceivedSpan) -> list[str]:
    """Return the names of the spans above a span, the next first."""
    by_id = {span.id: span for span in spans}
    above = by_id.get(child.parent)
    return [f"{above.service}: {above.name}", *parents(spans, above)] if above else []


async def test_a_cycle_is_one_trace_and_its_bind_is_linked_to_it(
    world: World, collector: Collector
) -> None:
    async with world.scheduler("annotated"):
        await world.create(pod("traced", "annotated"))
        await world.bound("traced")
        await until(lambda: bool(collector.find("binding cycle", k8s_pod_name="traced")))
        await until(lambda: bool(collector.find("scheduling cycle", k8s_pod_name="traced")))
    (root,) = collector.find("scheduling cycle", k8s_pod_name="traced")
    (bind,) = collector.find("binding cycle", k8s_pod_name="traced")
    await until(lambda: len(collector.of(root.trace)) >= 8)
    await until(lambda: len(collector.of(bind.trace)) >= 4)
    cycle = collector.of(root.trace)
    found = {(span.service, span.name): span for span in cycle}
    gateway = "moorage-gateway"
    assert (root.parent, root.error) == ("", "")
    for kind in ("filter", "scorer"):
        phase = "filter" if kind == "filter" else "score"
        plugin = found[f"moorage-{kind}", "plugin Steered"]
        assert parents(cycle, plugin) == [
            f"moorage-{kind}: replica cycle",
            f"{gateway}: {phase}",
            f"{gateway}: scheduling cycle",
        ]
        replica = found[f"moorage-{kind}", "replica cycle"]
        assert replica.start <= plugin.start <= plugin.end <= replica.end
        assert found[gateway, phase].start <= replica.start
    assert parents(cycle, found[gateway, "prioritize"]) == [f"{gateway}: scheduling cycle"]
    about = root.attributes
    assert (about["k8s.namespace.name"], about["moorage.profile"]) == ("default", "annotated")
    assert (about["moorage.nodes"], about["moorage.feasible"]) == (2, 2)
    assert about["moorage.generation"] > 0

    assert bind.links == ((root.trace, root.id),)
    spans = collector.of(bind.trace)
    (written,) = (span for span in spans if span.name == "POST pods/binding")
    assert parents(spans, written) == ["moorage-binder: bind pod", f"{gateway}: binding cycle"]
    plugins = [span for span in spans if span.name == "plugin DecisionAnnotation"]
    assert [parents(spans, each)[0] for each in plugins] == ["moorage-binder: bind pod"]
    assert bind.attributes["k8s.node.name"] in ("n1", "n2")
