"""Rounds of the annotator: a server in the place of Prometheus, the embedded API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from moorage import PluginFailedError
from moorage.measurements import PrometheusError
from moorage.models import NodeManifest, decode_node
from moorage.testing import make_pod, run_filter, run_score
from moorage_host.kube import connect
from sandbox.apiserver import ApiServer
from services.annotator.planning import Need, WriteResult
from services.annotator.rounds import Annotator, NodeClient, Round
from services.annotator.settings import AnnotatorSettings
from services.filter.plugins.safe_overload import SafeOverload
from services.scorer.plugins.load.safe_balance import SafeBalance
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tools.inprocess.api import Api
from tools.planes.objects import node

GIB = 1024**3
Run = Callable[..., Awaitable[Round]]


@pytest.fixture
def api(server: ApiServer) -> Api:
    """A cluster of three nodes with 8 CPUs and 32 GiB."""
    api = Api(server)
    for name in ("n1", "n2", "n3"):
        api.create("/api/v1/nodes", node(name))
    return api


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        fake.measures(measured(n1=(6000, 20), n2=(700, 30), n3=(3000, 5)))
        yield fake


def measured(**free: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Say what is free: millicores and GiB, by node; nothing deviates."""
    return {
        "mean-free-cpu": {name: cpu for name, (cpu, _) in free.items()},
        "std-free-cpu": dict.fromkeys(free, 0.0),
        "mean-free-memory": {name: memory * GIB for name, (_, memory) in free.items()},
        "std-free-memory": dict.fromkeys(free, 0.0),
    }


@asynccontextmanager
async def nodes_of(kubeconfig: str, folder: Path) -> AsyncIterator[NodeClient]:
    (folder / "kubeconfig").write_text(kubeconfig)
    client = await connect(folder / "kubeconfig")
    try:
        yield NodeClient(client, timeout=3.0)
    finally:
        await client.close()


def settings(prometheus: FakePrometheus, **others: Any) -> AnnotatorSettings:
    return AnnotatorSettings(prometheus=prometheus.address, **others)


@pytest.fixture
def run(server: ApiServer, prometheus: FakePrometheus, tmp_path: Path) -> Run:
    async def one_round(later: timedelta = timedelta(), **others: Any) -> Round:
        now = datetime.now(UTC) + later
        async with nodes_of(server.kubeconfig(), tmp_path) as nodes:
            return await Annotator(settings(prometheus, **others), nodes, lambda: now).round()

    return one_round


def annotations(api: Api, name: str) -> dict[str, str]:
    found: dict[str, str] = api.read(f"/api/v1/nodes/{name}")["metadata"].get("annotations", {})
    return found


def manifests(api: Api) -> list[NodeManifest]:
    """Return the nodes as the API server has them, in the form that plugins get."""
    paths = (f"/api/v1/nodes/n{number}" for number in (1, 2, 3))
    return [decode_node(json.dumps(api.read(path))) for path in paths]


async def decide(api: Api) -> tuple[list[str], dict[str, float]]:
    """Ask the plugins about a pod of half a CPU, by nothing but annotations of nodes."""
    pod, found = make_pod(requests={"cpu": "500m"}), manifests(api)
    verdicts = await asyncio.to_thread(run_filter, SafeOverload(), pod, *found)
    rejected = [name for name, verdict in verdicts.items() if verdict]
    return rejected, await asyncio.to_thread(run_score, SafeBalance(), pod, *found)


async def test_plugins_decide_by_what_was_written(api: Api, run: Run) -> None:
    assert (await decide(api))[0] == []
    ended = await run()
    assert ended.count(WriteResult.WRITTEN) == ended.count(Need.NEW) == 3
    rejected, scores = await decide(api)
    assert rejected == ["n2"]  # 7300 + 500 of 8000 millicores are more than 90 percent
    assert scores["n1"] > scores["n3"] > scores["n2"]


async def test_only_what_changed_is_written_until_it_is_old(
    api: Api, run: Run, prometheus: FakePrometheus
) -> None:
    await run()
    prometheus.measures(measured(n1=(6010, 20), n2=(6000, 30), n3=(3000, 5)))
    patches = api.count("patch", "nodes")
    ended = await run(timedelta(minutes=1))
    assert patches() == 1
    assert (ended.count(Need.CHANGED), ended.count(Need.NONE)) == (1, 2)
    assert annotations(api, "n2")["mean-free-cpu"] == "6000"
    assert annotations(api, "n1")["mean-free-cpu"] == "6000"
    assert annotations(api, "n1")["load-measured-at"] < annotations(api, "n2")["load-measured-at"]
    ended = await run(timedelta(minutes=5, seconds=1))
    needs = {each.node: each.need for each in ended.nodes}
    assert needs["n1"] is needs["n3"] is Need.AGED
    assert annotations(api, "n1")["mean-free-cpu"] == "6010"


async def test_a_dead_prometheus_changes_nothing_and_plugins_see_the_age(
    api: Api, run: Run, prometheus: FakePrometheus
) -> None:
    await run(timedelta(minutes=-14))
    before = annotations(api, "n2")
    prometheus.status = 503
    requests = api.count("*", "nodes")
    with pytest.raises(PrometheusError, match=r"cannot query Prometheus at http.*HTTP status 503"):
        await run()
    assert requests() == 0
    assert annotations(api, "n2") == before
    assert (await decide(api))[0] == ["n2"]
    older = SafeOverload(SafeOverload.Args(annotation_max_age="13m", on_missing="fail"))
    with pytest.raises(PluginFailedError, match="nodes without measurements"):
        await asyncio.to_thread(run_filter, older, make_pod(), *manifests(api))


async def test_the_presets_that_would_fit_are_named(
    api: Api, run: Run, prometheus: FakePrometheus
) -> None:
    def by_address(query: str) -> list[tuple[dict[str, str], float]]:
        label = {"instance": "10.0.0.1:9100", "moorage_measure": "mean-free-cpu"}
        return [(label, 1.0)] if "by (instance)" in query else []

    prometheus.answer = by_address
    expected = (
        r'measures no node by the label "node": it knows nodes under --preset instance-ip \(1\)'
    )
    with pytest.raises(PrometheusError, match=expected):
        await run()


async def test_nodes_of_another_name_are_named(
    api: Api, run: Run, prometheus: FakePrometheus
) -> None:
    prometheus.measures(measured(**{"n1.example.com": (1, 1), "n2.example.com": (1, 1)}))
    expected = 'measures nodes such as "n1.example.com", the cluster has nodes such as "n1"'
    with pytest.raises(PrometheusError, match=expected):
        await run()


@pytest.mark.parametrize("effects", [{"status": 429}, {"status": 503}, {"delay_seconds": 5}])
async def test_a_node_that_was_not_written_is_written_in_the_next_round(
    api: Api, run: Run, effects: dict[str, Any]
) -> None:
    api.fault("patch", "nodes", name="n2", **effects)
    ended = await run()
    assert (ended.count(WriteResult.WRITTEN), ended.count(WriteResult.FAILED)) == (2, 1)
    assert ended.failure == ""
    ended = await run()
    assert (ended.count(WriteResult.WRITTEN), ended.count(Need.NONE)) == (1, 2)


async def test_a_node_that_is_deleted_meanwhile_is_no_failure(api: Api, run: Run) -> None:
    api.fault("patch", "nodes", name="n2", status=404)
    ended = await run()
    assert (ended.count(WriteResult.GONE), ended.failure) == (1, "")


async def test_no_more_nodes_are_written_at_once_than_is_said(
    prometheus: FakePrometheus, tmp_path: Path
) -> None:
    third = asyncio.Event()
    running = 0
    forms = set()

    async def handle(request: web.Request) -> web.Response:
        nonlocal running
        if request.method == "GET":
            items = [{"metadata": {"name": f"n{number}"}} for number in (1, 2, 3)]
            metadata = {"resourceVersion": "1"}
            return web.json_response({"metadata": metadata, "items": [*items, {"metadata": 5}]})
        forms.add((request.content_type, request.query["fieldManager"]))
        running += 1
        if running == 3:
            third.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await third.wait()
        running -= 1
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as api_server:
        kubeconfig = ApiServer().kubeconfig().replace('""', f'"{api_server.make_url("")}"')
        async with nodes_of(kubeconfig, tmp_path) as nodes:
            annotator = Annotator(settings(prometheus, concurrency=2), nodes)
            with capture_logs() as logs:
                ended = await annotator.round()
    assert ended.count(WriteResult.WRITTEN) == 3
    assert not third.is_set()
    assert forms == {("application/merge-patch+json", "moorage-annotator")}
    assert [log["event"] for log in logs] == ["A node cannot be read and is left out."]


async def test_an_api_server_that_is_silent_is_named(
    server: ApiServer, api: Api, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    api.fault("list", "nodes", delay_seconds=60)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    client = await connect(tmp_path / "kubeconfig")
    try:
        with pytest.raises(TimeoutError, match="GET /api/v1/nodes: nothing heard from"):
            await Annotator(settings(prometheus), NodeClient(client, timeout=0.2)).round()
    finally:
        await client.close()
