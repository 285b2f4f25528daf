"""Plugins with a real Prometheus, in all the layouts of common installations."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from moorage import ScorePlugin, Scores
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.measurements import Preset, PrometheusSettings
from moorage.measurements.load import LoadArguments, LoadMeter
from moorage.models import NodeAddress, NodeManifest, NodeStatus
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import LONG_AGO
from moorage.testing import make_node, make_nodes, make_pod, run_score
from moorage_host.kube import connect
from moorage_host.plugins.ranking import ScoreRun, run_scores
from sandbox.apiserver import ApiServer
from services.annotator.rounds import Annotator, NodeClient
from services.annotator.settings import AnnotatorSettings
from services.scorer.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from services.scorer.plugins.load.network_traffic import NetworkTraffic
from tests.prometheus import Counters, Prometheus, exporters, prometheus, wait_for_samples
from tools.inprocess.api import Api
from tools.waiting import until

TERABYTE = 1e12
COUNTERS = {"old-idle": (TERABYTE, 0.0), "new-busy": (0.0, 10e6)}
IDLE_SHARE = {"old-idle": 0.75, "new-busy": 0.25}
ADDRESSES = {"old-idle": "10.0.0.1", "new-busy": "10.0.0.2"}
NAMES = list(COUNTERS)


def node(name: str) -> NodeManifest:
    made = make_node(name)
    status = NodeStatus(
        allocatable=made.status.allocatable,
        addresses=(NodeAddress(type="InternalIP", address=ADDRESSES[name]),),
    )
    return NodeManifest(metadata=made.metadata, status=status)


NODES = [node(name) for name in NAMES]


BUSY = 'rate(node_network_receive_bytes_total{device="eth0"}[6s]) > 9e6'

JOBS: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]] = {
    # The chart `prometheus`, before and since 15.0.0.
    "labels": [
        (f"/{n}", {"kubernetes_node": n, "node": n, "instance": f"pod-{n}:9100"}) for n in NAMES
    ],
    # kube-prometheus-stack: the node's address, and the exporter's pod.
    "node-exporter": [
        (
            f"/{n}",
            {"instance": f"{ADDRESSES[n]}:9100", "namespace": "monitoring", "pod": f"exporter-{n}"},
        )
        for n in NAMES
    ],
    "kube-state-metrics": [("/pods", {})],
    # kube-prometheus.
    "relabelled": [(f"/{n}", {"instance": n}) for n in NAMES],
    # The same exporter, scraped for the second time.
    "again": [("/new-busy", {"node": "new-busy", "instance": "replica:9100"})],
}


class Servers(NamedTuple):
    """One Prometheus to ask, and one to kill."""

    address: str
    doomed: Prometheus


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Scrape the same exporters as several installations would."""
    folders = [tmp_path_factory.mktemp("prometheus") for _ in range(2)]
    counters = Counters(bytes=COUNTERS, idle_share=IDLE_SHARE)
    with (
        exporters(counters) as exporter,
        prometheus(folders[0], exporter, JOBS) as lasting,
        prometheus(folders[1], exporter, {"labels": JOBS["labels"]}) as doomed,
    ):
        wait_for_samples(lasting.address, BUSY, 4)
        wait_for_samples(lasting.address, "kube_pod_info", 2)
        wait_for_samples(doomed.address, BUSY, 1)
        yield Servers(lasting.address, doomed)


@pytest.fixture
def server(servers: Servers) -> str:
    return servers.address


def traffic(address: str, preset: Preset = "node", **others: str) -> NetworkTraffic:
    settings = PrometheusSettings(address=address, preset=preset, interval="100ms")
    args = {"network_interface": "eth0", "time_range": "6s", **others}
    return NetworkTraffic(NetworkTraffic.Args(prometheus=settings, **args))  # type: ignore[arg-type]


async def scores(plugin: NetworkTraffic | LoadVariationRiskBalancing) -> dict[str, float]:
    return await asyncio.to_thread(run_score, plugin, make_pod(), *NODES)


@pytest.mark.parametrize("preset", get_args(Preset))
async def test_an_old_idle_node_beats_a_new_busy_one(server: str, preset: Preset) -> None:
    assert await scores(traffic(server, preset)) == {"old-idle": 100, "new-busy": 0}


async def test_traffic_that_is_scraped_twice_counts_once(server: str) -> None:
    plugin = traffic(server)
    await plugin.start()
    busy = float(plugin.source.values(make_nodes(*NODES), "traffic")[1])
    await plugin.stop()
    assert 6e6 < busy < 15e6


async def test_the_sum_over_time_of_the_original_has_it_the_wrong_way_round(server: str) -> None:
    found = await scores(traffic(server, compat="sumOverTime"))
    assert found["old-idle"] == 0 < 90 < found["new-busy"]


async def test_an_empty_answer_names_the_presets_that_would_match(server: str) -> None:
    settings = PrometheusSettings(address=server, node_label="kubernetes_host")
    plugin = NetworkTraffic(
        NetworkTraffic.Args(prometheus=settings, network_interface="eth0", time_range="6s")
    )
    with capture_logs() as logs:
        await plugin.start()
        await plugin.stop()
    (log,) = logs
    assert set(log["nodes_by_preset"]) == set(get_args(Preset))
    assert log["nodes_by_preset"]["kube-pod-info"] == 2


async def test_load_is_measured(server: str) -> None:
    settings = PrometheusSettings(address=server, interval="100ms")
    args = LoadArguments(prometheus=settings, window="6s")
    meter, nodes = LoadMeter(args), make_nodes(*NODES)

    def mean(resource: str) -> Scores:
        assert resource in ("cpu", "memory")
        return meter.load(nodes, "cpu" if resource == "cpu" else "memory").mean_with(0)

    await meter.start()
    await until(lambda: np.allclose(mean("cpu"), [0.25, 0.75], atol=0.05), seconds=30)
    memory = mean("memory").tolist()
    spread = meter.load(nodes, "memory").deviation_share.tolist()
    await meter.stop()
    assert memory == pytest.approx([0.25, 0.75])
    assert spread == pytest.approx([0, 0])


async def test_the_annotator_writes_what_is_measured(server: str, tmp_path: Path) -> None:
    async with ApiServer() as api_server:
        api = Api(api_server)
        for name in NAMES:
            api.node(name)
        (tmp_path / "kubeconfig").write_text(api_server.kubeconfig())
        client = await connect(tmp_path / "kubeconfig")
        settings = AnnotatorSettings(prometheus=server, window=6.0)
        annotator = Annotator(settings, NodeClient(client, timeout=20.0))

        async def is_written() -> bool:
            await annotator.round()
            found = [api.read(f"/api/v1/nodes/{name}")["metadata"]["annotations"] for name in NAMES]
            free = [[float(each[f"mean-free-{of}"]) for each in found] for of in ("cpu", "memory")]
            is_steady = all(int(each["std-free-cpu"]) < 50 for each in found)
            return is_steady and np.allclose(free, [750, 250], rtol=0.1)

        await until(is_written, seconds=30)
        await client.close()


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        (NetworkTraffic, {"network_interface": "eth0", "time_range": "6s"}),
        (LoadVariationRiskBalancing, {"window": "6s"}),
    ],
)
async def test_pods_between_two_samples_do_not_all_go_to_the_idle_node(
    server: str, kind: type[NetworkTraffic] | type[LoadVariationRiskBalancing], others: Any
) -> None:
    """Twenty pods of 200m fill the gap of two cores between 25 % and 75 %, and go on to both."""
    settings = PrometheusSettings(address=server, interval="1h", max_age="1h")
    plugin = kind(kind.Args(prometheus=settings, **others))
    snapshot = Snapshot()
    for row, manifest in enumerate(NODES):
        snapshot.set_node(row, manifest)
    for number in range(10):
        snapshot.place_pod(1, make_pod(f"old-{number}"), since=LONG_AGO)
    profile = Profile(name="moorage", plugins=(EnabledPlugin(plugin=plugin),))
    places: Counter[str] = Counter()
    await plugin.start()
    for number in range(20):
        pod = make_pod(f"new-{number}", requests={"cpu": "200m"})
        run = await run_scores(profile, pod, snapshot.nodes(), Supervisor())
        assert run.totals is not None
        best = int(run.totals.argmax())
        places[NAMES[best]] += 1
        snapshot.place_pod(best, pod)
    await plugin.stop()
    # How the load varies depends on when Prometheus scrapes, which a busy machine delays.
    fewest, most = (9, 16) if kind is NetworkTraffic else (5, 19)
    assert fewest <= places["old-idle"] <= most


async def run_both(plugin: ScorePlugin) -> ScoreRun:
    """Run a plugin as the scorer does, beside one that needs no measurements."""
    plugins = (plugin, NodeResourcesLeastAllocated())
    enabled = tuple(EnabledPlugin(plugin=each, aborts=False) for each in plugins)
    profile = Profile(name="moorage", plugins=enabled)
    return await run_scores(profile, make_pod(), make_nodes(*NODES), Supervisor())


async def test_a_dead_prometheus_leaves_scheduling_alive(servers: Servers) -> None:
    address = servers.doomed.address
    settings = PrometheusSettings(address=address, interval="50ms", max_age="1500ms")
    plugin = NetworkTraffic(
        NetworkTraffic.Args(prometheus=settings, network_interface="eth0", time_range="6s")
    )
    await plugin.start()
    alive = await run_both(plugin)
    servers.doomed.kill()
    await until(lambda: not plugin.source.is_fresh)
    dead = await run_both(plugin)
    await plugin.stop()
    assert [each.plugin for each in alive.scores] == [
        "NetworkTraffic",
        "NodeResourcesLeastAllocated",
    ]
    assert [each.plugin for each in dead.scores] == ["NodeResourcesLeastAllocated"]
    assert dead.totals is not None
    assert (dead.totals == dead.scores[0].normalized).all()
    assert f"cannot query Prometheus at {address}" in dead.plugins[0].failure
    assert re.match(
        r"2 of 2 nodes have no measurements \(onMissing: neutral\); "
        r"Prometheus last answered \d+s ago: cannot query Prometheus at ",
        dead.plugins[0].note,
    )
    labels = {"source": "traffic", "address": address, "result": "failed"}
    assert (REGISTRY.get_sample_value("moorage_metrics_polls_total", labels) or 0) > 0
