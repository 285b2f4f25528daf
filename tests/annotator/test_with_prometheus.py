"""What a real Prometheus measures is what the annotator writes, and plugins are told presets by."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from moorage.measurements import PrometheusError, PrometheusSettings
from moorage.testing import running
from moorage_host.kube import connect
from sandbox.apiserver import ApiServer
from services.annotator.rounds import Annotator, NodeClient
from services.annotator.settings import AnnotatorSettings
from services.scorer.plugins.load.network_traffic import NetworkTraffic
from tests.prometheus import Counters, exporters, prometheus, wait_for_samples
from tools.inprocess.api import Api
from tools.waiting import until

IDLE = {"idle": 0.75, "busy": 0.25}
READY = 'rate(node_network_receive_bytes_total{device="eth0"}[6s])'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    counters = Counters(bytes=dict.fromkeys(IDLE, (0.0, 1e6)), idle_share=IDLE)
    jobs = {"nodes": [(f"/{name}", {"node": name}) for name in IDLE]}
    with (
        exporters(counters) as exporter,
        prometheus(tmp_path_factory.mktemp("prometheus"), exporter, jobs) as running_server,
    ):
        wait_for_samples(running_server.address, READY, len(IDLE))
        yield running_server.address


async def test_the_annotator_writes_what_is_measured(server: str, tmp_path: Path) -> None:
    async with ApiServer() as api_server:
        api = Api(api_server)
        for name in IDLE:
            api.node(name)
        (tmp_path / "kubeconfig").write_text(api_server.kubeconfig())
        client = await connect(tmp_path / "kubeconfig")
        settings = AnnotatorSettings(prometheus=server, window=6.0)
        annotator = Annotator(settings, NodeClient(client, timeout=20.0))

        async def is_written() -> bool:
            with suppress(PrometheusError):  # nothing is measured yet
                await annotator.round()
            nodes = [api.read(f"/api/v1/nodes/{name}")["metadata"] for name in IDLE]
            found = [each.get("annotations", {}) for each in nodes]
            if any(
                {"mean-free-cpu", "mean-free-memory", "std-free-cpu"} - set(each) for each in found
            ):
                return False
            free = [[float(each[f"mean-free-{of}"]) for each in found] for of in ("cpu", "memory")]
            is_steady = all(int(each["std-free-cpu"]) < 50 for each in found)
            return is_steady and np.allclose(free, [750, 250], rtol=0.1)

        try:
            await until(is_written)
        finally:
            await client.close()


async def test_an_empty_answer_names_the_presets_that_would_match(server: str) -> None:
    settings = PrometheusSettings(address=server, preset="kubernetes-node")
    args = NetworkTraffic.Args(prometheus=settings, network_interface="eth0", time_range="6s")
    with capture_logs() as logs:
        async with running(NetworkTraffic(args)):
            pass
    (log,) = logs
    assert log["nodes_by_preset"]["node"] == len(IDLE)
