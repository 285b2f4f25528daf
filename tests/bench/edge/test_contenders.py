"""The contenders do the same work: the same question has the same answer."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from bench.edge import EMPTY_PROFILE, GO_PLUGINS, MAIN, NUMBERED, REFERENCE, contenders
from bench.processes import goprograms, objects
from bench.processes.load import Call, Contender, Job, Load
from bench.processes.objects import Object
from bench.processes.stacks import BATCH, opened

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

NODES = 300
PODS_PER_NODE = 3


class Asked:
    """Running contenders, by name."""

    def __init__(self, api: str, contenders: dict[str, Contender], load: Load) -> None:
        self.api = api
        self.contenders = contenders
        self.load = load

    async def call(
        self, name: str, verb: str, pod: Object, nodes: list[Object], *, whole: bool
    ) -> Any:
        one = self.contenders[name]
        body = {
            "Pod": {**pod, "spec": {**pod["spec"], "schedulerName": one.profile}},
            "Nodes": {"metadata": {}, "items": nodes} if whole else None,
            "NodeNames": None if whole else [node["metadata"]["name"] for node in nodes],
        }
        data, headers = io.BytesIO(msgspec.json.encode(body)), {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{one.url}/{verb}", data=data, headers=headers) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json(content_type=None)

    async def feasible(
        self, name: str, pod: Object, nodes: list[Object], *, whole: bool
    ) -> set[str]:
        answer = await self.call(name, "filter", pod, nodes, whole=whole)
        assert not answer["Error"]
        if whole:
            return {node["metadata"]["name"] for node in answer["Nodes"]["items"]}
        return set(answer["NodeNames"])

    async def scores(
        self, name: str, pod: Object, nodes: list[Object], *, whole: bool
    ) -> dict[str, int]:
        answer = await self.call(name, "prioritize", pod, nodes, whole=whole)
        return {one["Host"]: one["Score"] for one in answer if one["Score"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asked]:
    if not goprograms.are_built():
        pytest.skip("the Go programs of the bench are not built: make e2e and make bench do that")
    directory: Path = tmp_path_factory.mktemp("bench")
    async with opened(directory, print) as bench:
        cluster = await bench.cluster(NODES, PODS_PER_NODE)
        found = await contenders(bench, cluster)
        yield Asked(cluster.api, found, Load(await bench.program(goprograms.CLIENT)))


def pod(name: str, cpu: str = "250m", **spec: Any) -> Object:
    made = objects.new_pod()
    made["metadata"] |= {"name": name, "uid": f"uid-of-{name}"}
    made["spec"] |= spec
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "256Mi"}}
    return made


PODS = {
    "plain": pod("plain"),
    "large": pod("large", cpu="9"),
    "zoned": pod("zoned", nodeSelector={"topology.kubernetes.io/zone": "eu-west-1b"}),
    "tolerant": pod("tolerant", tolerations=[{"operator": "Exists"}]),
    "idle": pod("idle", cpu="0"),
}


@pytest.mark.parametrize("whole", [False, True], ids=["names", "whole nodes"])
@pytest.mark.parametrize("name", PODS)
async def test_moorage_and_the_go_plugins_agree(asked: Asked, name: str, whole: bool) -> None:
    nodes, wanted = [*objects.nodes(NODES)], PODS[name]
    theirs = await asked.feasible(GO_PLUGINS, wanted, nodes, whole=whole)
    assert 0 < len(theirs) < NODES or name == "tolerant"
    assert await asked.feasible(MAIN, wanted, nodes, whole=whole) == theirs
    left = [node for node in nodes if node["metadata"]["name"] in theirs]
    scores = await asked.scores(GO_PLUGINS, wanted, left, whole=whole)
    assert len(set(scores.values())) > 1 or name == "tolerant"
    assert await asked.scores(MAIN, wanted, left, whole=whole) == scores


async def test_plugins_for_one_node_keep_the_same_nodes(asked: Asked) -> None:
    nodes = [*objects.nodes(NODES)]
    batch = await asked.feasible(MAIN, PODS["large"], nodes, whole=False)
    assert await asked.feasible("moorage per node 3+3", PODS["large"], nodes, whole=False) == batch


async def test_numbered_pods_are_asked_of_the_same_processes(asked: Asked) -> None:
    main, numbered = (asked.contenders[name] for name in (MAIN, NUMBERED))
    assert (main.pods, numbered.pods) == ("unlike", "numbered")
    assert (main.url, main.profile, main.pids) == (numbered.url, numbered.profile, numbered.pids)
    assert all(one.pods == "unlike" for one in asked.contenders.values() if one is not numbered)


async def test_the_reference_keeps_all_and_likes_none_better(asked: Asked) -> None:
    nodes = [*objects.nodes(NODES)]
    for whole in (False, True):
        kept = await asked.feasible(REFERENCE, PODS["large"], nodes, whole=whole)
        assert len(kept) == NODES
        assert await asked.scores(REFERENCE, PODS["large"], nodes, whole=whole) == {}


async def test_the_empty_profile_keeps_all_and_has_no_opinion(asked: Asked) -> None:
    nodes = [*objects.nodes(NODES)]
    kept = await asked.feasible(EMPTY_PROFILE, PODS["large"], nodes, whole=False)
    assert len(kept) == NODES
    assert await asked.scores(EMPTY_PROFILE, PODS["large"], nodes, whole=False) == {}


@pytest.mark.parametrize("whole", [False, True], ids=["names", "whole nodes"])
async def test_the_load_asks_all_contenders_in_turn(asked: Asked, whole: bool) -> None:
    job = Job(
        api=asked.api,
        contenders=[asked.contenders[name] for name in (REFERENCE, MAIN)],
        nodes=100,
        rounds=2,
        warm_up=1,
        whole=whole,
        changed=3,
        pause_ms=1,
    )
    progress: list[int] = []
    rounds = await asked.load.run(job, progress.append)
    assert [one.contender for one in rounds] == [
        MAIN,
        REFERENCE,
        REFERENCE,
        MAIN,
    ]
    assert progress == [1, 2, 3]
    assert [one.feasible for one in rounds] == [99, 100, 100, 99]
    assert not any(one.failure for one in rounds)
    for call in (call for one in rounds for call in (one.filter, one.prioritize)):
        check_call(call, whole)


def check_call(call: Call, whole: bool) -> None:
    assert call.answered > 0
    assert call.sent > (99 * 7000 if whole else 99 * 30)
    assert call.received > 0


async def test_the_load_reports_failures(asked: Asked) -> None:
    nobody = Contender("nobody", "http://127.0.0.1:1", BATCH)
    job = Job(api=asked.api, contenders=[nobody], nodes=3, rounds=1, warm_up=0)
    (only,) = await asked.load.run(job, lambda _: None)
    assert "connection refused" in only.failure
