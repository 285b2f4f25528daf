"""From an exporter through a real Prometheus into annotations, and out of them into decisions."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from moorage import Pod
from moorage.models import NodeManifest, decode_node
from moorage.testing import make_pod, run_filter, run_score
from sandbox.apiserver import ApiServer
from services.filter.plugins.safe_overload import SafeOverload
from services.scorer.plugins.load.safe_balance import SafeBalance
from tests.cli.support import Object, moorage
from tests.prometheus import Counters, Prometheus, exporters, prometheus, wait_for_samples
from tools.inprocess.api import Api

MODULE = "services.annotator"
FREE = ("mean-free-cpu", "mean-free-memory")
IDLE = {"idle": 0.95, "phase": 0.5, "busy": 0.05}
READY = "node_memory_MemAvailable_bytes offset 8s"
"""The first rates come from few readings and are low; they are to be out of the window."""


@pytest.fixture(scope="module")
def measuring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scrape the exporters of nodes with one CPU and 1000 bytes of memory."""
    counters = Counters(bytes=dict.fromkeys(IDLE, (0.0, 0.0)), idle_share=IDLE)
    jobs = {"nodes": [(f"/{name}", {"node": name}) for name in IDLE]}
    with (
        exporters(counters) as exporter,
        prometheus(tmp_path_factory.mktemp("prometheus"), exporter, jobs) as running,
    ):
        wait_for_samples(running.address, READY, len(IDLE))
        yield running


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        api = Api(server)
        for name in (*IDLE, "new"):
            api.create("/api/v1/nodes", small(name))
        yield server


def small(name: str) -> Object:
    amounts = {"cpu": "1", "memory": "1000", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def nodes(server: ApiServer) -> list[NodeManifest]:
    api = Api(server)
    return [decode_node(json.dumps(api.read(f"/api/v1/nodes/{name}"))) for name in (*IDLE, "new")]


async def verdicts(server: ApiServer, pod: Pod) -> list[str]:
    found = await asyncio.to_thread(run_filter, SafeOverload(), pod, *nodes(server))
    return [name for name, verdict in found.items() if verdict]


async def annotate(home: Path, address: str, *more: str) -> tuple[int, list[str]]:
    given = ("--prometheus", address, "--kubeconfig", "kubeconfig", "--window", "6s", *more)
    async with moorage(home, *given, "--once", module=MODULE) as command:
        code, errors = await command.ended()
    return code, [*command.lines, *errors.splitlines()]


async def test_what_is_measured_is_what_plugins_decide_by(
    measuring: Prometheus, server: ApiServer, tmp_path: Path
) -> None:
    pod = make_pod(requests={"cpu": "100m", "memory": "10"})
    assert await verdicts(server, pod) == []
    code, lines = await annotate(tmp_path, measuring.address)
    assert code == 0, lines
    assert lines[-1] == "3 of 4 nodes written, 0 unchanged, 1 not measured"
    for node in nodes(server)[:-1]:
        free = {name: float(node.metadata.annotations[name]) for name in FREE}
        assert free == pytest.approx(
            {"mean-free-cpu": 1000 * IDLE[node.name], "mean-free-memory": 1000 * IDLE[node.name]},
            rel=0.1,
        )
        assert int(node.metadata.annotations["std-free-cpu"]) < 50
    assert await verdicts(server, pod) == ["busy"]
    scores = await asyncio.to_thread(run_score, SafeBalance(), pod, *nodes(server))
    assert scores["idle"] > scores["phase"] > scores["busy"]


async def test_a_preset_of_another_installation_is_told(
    measuring: Prometheus, server: ApiServer, tmp_path: Path
) -> None:
    code, lines = await annotate(tmp_path, measuring.address, "--preset", "kubernetes-node")
    assert code == 1
    assert "it knows nodes under --preset node (3)" in lines[-1]
