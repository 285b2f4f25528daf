"""Traces of cycles and binds, from real processes to an OpenTelemetry collector."""

import asyncio
import json
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
import pytest_asyncio

from moorage.v1 import filter_pb2, filter_pb2_grpc
from tests.collector import Collector, ReceivedSpan, collecting
from tests.prometheus import scraping
from tests.scenarios.world import World
from tools.planes.embedded import EmbeddedPlane
from tools.planes.objects import node, pod
from tools.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.embedded_alone]

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
        for name, value in {**BATCHES, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}.items():
            patch.setenv(name, value)
        async with World.started(plane, options={"gateway": ["--trace-ratio=1"]}) as started:
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


async def test_prometheus_leads_from_a_histogram_to_the_decision_and_its_trace(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    async with world.scheduler():
        await world.create(pod("measured"))
        await world.bound("measured")
    found = await asyncio.to_thread(exemplars, world.services.admin, tmp_path)
    for name, labels in (
        ("moorage_scheduling_cycle_seconds_bucket", {}),
        ("moorage_cycle_duration_seconds_bucket", {"phase": "filter"}),
        ("moorage_plugin_execution_duration_seconds_bucket", {"plugin": "Steered"}),
    ):
        series = [each for each in found[name] if labels.items() <= each["seriesLabels"].items()]
        newest = max(
            (each for one in series for each in one["exemplars"]),
            key=lambda each: each["timestamp"],
        )
        url = f"{world.services.admin}/decisions?id={newest['labels']['decision']}"
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            (item,) = (await answer.json())["items"]
        assert item["pod"] == "measured"
        root = collector.find("scheduling cycle", k8s_pod_name="measured")
        assert [each.trace for each in root] == [newest["labels"]["trace_id"]]


def exemplars(url: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the series with exemplars that a real Prometheus reads of an admin port, by name."""
    target = {"targets": [url.removeprefix("http://")]}
    job = {"job_name": "gateway", "static_configs": [target]}
    began = time.time() - 600
    with scraping(folder, [job], "--enable-feature=exemplar-storage") as prometheus:
        query = 'query={__name__=~"moorage_.*_bucket"}'.replace('"', "%22")
        asked = f"{prometheus.address}/api/v1/query_exemplars?{query}&start={began:.0f}"
        end = time.monotonic() + 60
        found: dict[str, list[dict[str, Any]]] = {}
        while len(found) < 4 and time.monotonic() < end:
            time.sleep(0.1)
            try:
                with urllib.request.urlopen(f"{asked}&end={time.time():.0f}") as answer:
                    data = json.load(answer)["data"]
            except OSError:
                continue
            found = {}
            for series in data:
                found.setdefault(series["seriesLabels"]["__name__"], []).append(series)
    return found


async def test_scores_without_effect_are_counted(world: World) -> None:
    async def count(name: str) -> float:
        return await world.metric(f"moorage_{name}_scores_total")

    async with world.scheduler():
        for scores, neutral, rounded in (
            ({"n1": 7, "n2": 7}, 1, 0),
            ({"n1": 50.2, "n2": 50.1}, 0, 1),
            ({"n1": 90, "n2": 10}, 0, 0),
        ):
            before = await count("neutral"), await count("rounded")
            name = f"scored-{neutral}-{rounded}"
            await world.create(pod(name, score=scores))
            await world.bound(name)
            after = await count("neutral"), await count("rounded")
            assert after == (before[0] + neutral, before[1] + rounded)


async def test_a_call_by_hand_is_a_part_of_its_callers_trace(
    world: World, collector: Collector
) -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    request = filter_pb2.FilterRequest(profile="steered")
    request.nodes.add().manifest.update(node("n1"))
    manifest = pod("by-hand")
    manifest["metadata"]["uid"] = "by-hand"
    request.pod.manifest.update(manifest)
    async with grpc.aio.insecure_channel(world.services.target("filter")) as channel:
        stub = filter_pb2_grpc.FilterServiceStub(channel)
        for flags in ("00", "01"):  # the first one is not sampled
            metadata = (("traceparent", f"00-{trace}-{parent}-{flags}"),)
            answer = await stub.Filter(request, metadata=metadata, timeout=50)
            assert list(answer.feasible) == ["n1"]
    await until(lambda: len(collector.of(trace)) >= 2)
    spans = collector.of(trace)
    (call,) = (span for span in spans if span.parent == parent)
    assert call.name == "moorage.v1.FilterService/Filter"
    assert [span.name for span in spans if span.parent == call.id] == ["plugin Steered"]
