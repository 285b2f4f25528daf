"""Which pods of the bench are equal, and which are not."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from bench import edge
from bench.edge import EMPTY_PROFILE, MAIN, NUMBERED
from bench.processes import goprograms, objects
from bench.processes.control_plane import Batch
from bench.processes.load import Contender, Job, Load, Pods
from bench.processes.objects import Object
from bench.processes.stacks import opened

NODES = 3

KINDS = [("equal", False, False), ("numbered", True, False), ("unlike", True, True)]
"""Kinds of pods, whether they differ in what plugins may look at, and in what these do look at."""


class Listener:
    """An extender that keeps all nodes, and the pods that it is asked about; an API server too."""

    def __init__(self) -> None:
        self.filtered: list[Object] = []
        self.prioritized: list[Object] = []
        app = web.Application()
        app.router.add_get("/api/v1/nodes", self._nodes)
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/prioritize", self._prioritize)
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return f"http://{self.server.host}:{self.server.port}"

    async def _nodes(self, _: web.Request) -> web.Response:
        return web.json_response({"items": [*objects.nodes(NODES)]})

    async def _filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.filtered.append(asked["Pod"])
        return web.json_response({"NodeNames": asked["NodeNames"]})

    async def _prioritize(self, request: web.Request) -> web.Response:
        self.prioritized.append((await request.json())["Pod"])
        return web.json_response([])


@pytest_asyncio.fixture
async def listener() -> AsyncIterator[Listener]:
    made = Listener()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest_asyncio.fixture
async def load(tmp_path: Path) -> AsyncIterator[Load]:
    if not goprograms.are_built():
        pytest.skip("the Go programs of the bench are not built: make e2e and make bench do that")
    async with opened(tmp_path, print) as bench:
        yield Load(await bench.program(goprograms.CLIENT))


def what_plugins_sign(pod: Object) -> str:
    """Return everything of a pod that is part of its signature by default."""
    metadata = pod["metadata"]
    parts = [metadata[key] for key in ("namespace", "labels", "annotations", "ownerReferences")]
    return json.dumps([*parts, pod["spec"]], sort_keys=True)


def told_apart(pods: Sequence[Object]) -> bool:
    return all(len({pod["metadata"][key] for pod in pods}) == len(pods) for key in ("name", "uid"))


def looked_at(pod: Object) -> str:
    """Return what TaintToleration and NodeResourcesFit look at."""
    containers = pod["spec"]["containers"]
    requests = [container["resources"]["requests"] for container in containers]
    return json.dumps([pod["spec"]["tolerations"], requests], sort_keys=True)


@pytest.mark.parametrize(("kind", "signed", "seen"), KINDS)
async def test_pods_are_as_equal_as_their_contender_wants(
    listener: Listener, load: Load, kind: Pods, signed: bool, seen: bool
) -> None:
    contender = Contender("listener", listener.url, "a-profile", pods=kind)
    job = Job(api=listener.url, contenders=[contender], nodes=NODES, rounds=4, warm_up=1)
    for _ in range(2):  # what is remembered outlives a job
        assert not any(one.failure for one in await load.run(job, lambda _: None))
    pods = listener.filtered
    assert len(pods) == 10
    assert told_apart(pods)
    assert len({what_plugins_sign(pod) for pod in pods}) == (10 if signed else 1)
    assert len({looked_at(pod) for pod in pods}) == (10 if seen else 1)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"a-profile"}
    assert listener.prioritized == pods


async def test_contenders_of_one_job_have_pods_of_either_kind(
    listener: Listener, load: Load
) -> None:
    both = [
        Contender("differ", listener.url, "differ"),
        Contender("equal", listener.url, "equal", pods="equal"),
    ]
    job = Job(api=listener.url, contenders=both, nodes=NODES, rounds=3, warm_up=0)
    await load.run(job, lambda _: None)
    signs = [what_plugins_sign(pod) for pod in listener.filtered]
    assert len({one for one in signs if '"differ"' in one}) == 3
    assert len({one for one in signs if '"equal"' in one}) == 1


@pytest.mark.parametrize(("kind", "signed", "seen"), [KINDS[0], KINDS[2]])
def test_pods_of_the_real_cluster_are_as_equal_as_asked(
    kind: Pods, signed: bool, seen: bool
) -> None:
    batches = (
        Batch(prefix=prefix, profile="a-profile", kind=kind, waiting=3) for prefix in ("one", "two")
    )
    pods = [pod for batch in batches for pod in batch.build(0, 3)]
    assert len({pod["metadata"]["name"] for pod in pods}) == 6
    signs = {json.dumps([pod["metadata"]["labels"], pod["spec"]], sort_keys=True) for pod in pods}
    assert len(signs) == (6 if signed else 1)
    assert len({looked_at(pod) for pod in pods}) == (6 if seen else 1)


def test_numbered_pods_are_asked_wherever_names_are() -> None:
    for quick in (False, True):
        asked = edge.questions(quick=quick)
        assert len(asked) > 2
        for question in asked:
            assert MAIN in question.contenders
            assert (NUMBERED in question.contenders) is not question.whole


@pytest.mark.parametrize("nodes", [50, 500, 5000])
def test_every_node_has_been_named_before_rounds_count(nodes: int) -> None:
    question = edge.Question(nodes=nodes, contenders=(), rounds=1, seconds=1)
    assert question.warm_up * nodes >= edge.CLUSTER_NODES


def test_the_empty_profile_is_asked_wherever_budgets_for_names_are() -> None:
    for asked in (edge.questions(quick=False), edge.questions(quick=True)):
        for nodes in (500, 5000):
            assert any(
                EMPTY_PROFILE in one.contenders and one.nodes == nodes and not one.whole
                for one in asked
            )
