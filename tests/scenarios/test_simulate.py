"""What-if answers: they are what then happens, and asking leaves no trace."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
import yaml
from click.testing import CliRunner

from cli.main import main
from moorage.v1 import replica_pb2
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

GPU = "example.com/gpu"
CALLS = 1_000
AT_ONCE = 8


def machine(name: str, gpus: int) -> Object:
    made = node(name, labels={"kubernetes.io/hostname": name})
    for amounts in made["status"].values():
        amounts[GPU] = str(gpus)
    return made


def wanting(name: str, gpus: int, *, alone: bool = False) -> Object:
    """Return a pod; one that is *alone* does not go where another one of these is."""
    amounts = {"cpu": "1500m", GPU: str(gpus)}
    resources = {"requests": amounts, "limits": {GPU: str(gpus)}}
    container = {"name": "main", "image": "app:1", "resources": resources}
    made = pod(name, "packing", spec={"containers": [container]})
    if alone:
        made["metadata"]["labels"] = {"alone": ""}
        selector = {"matchExpressions": [{"key": "alone", "operator": "Exists"}]}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        made["spec"]["affinity"] = {"podAntiAffinity": required}
    return made


def simulated(folder: Path, dump: Object, pods: list[Object], policy: Object) -> dict[str, str]:
    """Return where `moorage simulate` puts the pods."""
    (folder / "dump.json").write_text(json.dumps(dump))
    (folder / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    plugins = Path(__file__).parent / "plugins"
    arguments = [f"--{each}={folder}/{file}" for each, file in (
        ("cluster", "dump.json"), ("pods", "pods.yaml"), ("config", "policy.yaml")
    )]  # fmt: skip
    result = CliRunner().invoke(main, ["simulate", *arguments, f"--plugin={plugins}", "-o", "json"])
    assert result.exit_code == 0, result.output
    (answer,) = json.loads(result.stdout)["policies"]
    return {each["pod"].partition("/")[2]: each["node"] for each in answer["placements"]}


async def test_pods_go_where_the_simulation_of_the_cluster_says(
    world: World, tmp_path: Path
) -> None:
    """No two nodes have as many GPUs free, so no score has ties; what is pending stays so."""
    await world.nodes(*(machine(f"n{i}", 3 + 4 * i) for i in range(6)))
    there = wanting("there", 1)
    there["spec"]["nodeName"] = "n4"
    await world.create(there)
    pods = [wanting(f"p{i:02}", 1 + i % 3, alone=i % 2 == 0) for i in range(20)]
    nodes, existing = await world.read("/api/v1/nodes"), [(await world.pods())["there"]]
    items = [{**each, "kind": "Node", "apiVersion": "v1"} for each in nodes["items"]]
    items += [{**each, "kind": "Pod", "apiVersion": "v1"} for each in existing]
    policy = yaml.safe_load((world.plane.directory / "policy.yaml").read_text())
    dump = {"apiVersion": "v1", "kind": "List", "items": items}
    expected = await asyncio.to_thread(simulated, tmp_path, dump, pods, policy)
    pending = sorted(name for name, place in expected.items() if not place)
    assert 0 < len(pending) < len(pods)
    assert len(set(expected.values())) > 4

    async with world.scheduler("packing"):
        for each in pods:
            # One by one: kube-scheduler has no order for pods that are created in one second.
            await world.create(each)
            name = each["metadata"]["name"]
            if expected[name]:
                await world.bound(name)
            else:
                await world.condition(name, "Unschedulable")
        places = await world.places()
    places.pop("there")
    assert places == expected


@pytest.mark.embedded_alone
async def test_a_thousand_questions_leave_no_trace(world: World) -> None:
    """Asked while nothing happens, no metric moves; asked while pods are bound, theirs alone do."""
    await world.nodes(*map(node, ("n1", "n2", "n3")))
    claiming = pod("asked", "colocated", labels={"tekton.dev/pipelineRun": "run"})
    claiming["metadata"]["uid"] = "asked"
    for_extender = {
        "Pod": claiming,
        "Nodes": {"items": [node("n1"), node("template-1", "64")]},
        "NodeNames": None,
    }
    scoring = {**claiming, "spec": {**claiming["spec"], "schedulerName": "steered"}}
    scoring["metadata"] = {**claiming["metadata"], "uid": "asked-too"}
    bodies = [("/simulate/filter", for_extender), ("/simulate", {"pod": scoring})]

    async def ask(number: int) -> None:
        path, body = bodies[number % len(bodies)]
        async with session.post(f"{world.services.admin}{path}", json=body) as response:
            answer = await response.json()
            assert response.status == 200, answer
        feasible = answer["Nodes"]["items"] if path.endswith("filter") else answer["feasible"]
        assert len(feasible) >= 2, answer

    async def ask_all(numbers: range) -> None:
        remaining = iter(numbers)

        async def worker() -> None:
            for number in remaining:
                await ask(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(worker())

    async with aiohttp.ClientSession() as session:
        await ask_all(range(CALLS // 10))  # warm
        await world.until(lambda: _replicas_follow(session, world))
        states = await _states(world)
        before = await _metrics(session, world)
        claims = await world.metric("moorage_claims_total")
        await ask_all(range(CALLS // 2))
        assert await _metrics(session, world) == before
        assert await _states(world) == states

        pods = [pod(f"live-{i:02}", labels={"app": "live"}) for i in range(40)]
        async with world.scheduler("steered"):
            asking = asyncio.create_task(ask_all(range(CALLS // 2)))
            for each in pods:
                await world.create(each)
            await world.bound()
            await asking
        names = sorted(each["metadata"]["name"] for each in pods)
        assert sorted(await world.pods()) == names
        for name in names:
            (attempt,) = await world.decisions(name)
            assert "claim" not in attempt
        async with session.get(f"{world.services.admin}/decisions/default/asked") as response:
            assert response.status == 404
        filtering, _ = await _states(world)
        assert filtering.pod_count == len(pods)
        assert await world.metric("moorage_claims_total") == claims
        assert await world.metric("moorage_cache_size", type="pods") == len(pods)


async def _states(world: World) -> tuple[Any, Any]:
    """Return what the filter and a scorer show of their state."""
    names = ["n1", "n2", "n3"]
    async with (
        grpc.aio.insecure_channel(world.services.target("filter")) as filtering,
        grpc.aio.insecure_channel(world.services.target("scorer-1")) as scoring,
    ):
        request = replica_pb2.GetStateRequest(node_names=names)
        of_filter = await ReplicaServiceStub(filtering).GetState(request, timeout=50)
        of_scorer = await ReplicaServiceStub(scoring).GetState(request, timeout=50)
    return of_filter, of_scorer


async def _replicas_follow(session: aiohttp.ClientSession, world: World) -> bool:
    """Whether filter, scorer and binder have the state that the gateway has."""
    async with session.get(f"{world.services.admin}/replicas") as response:
        generation = (await response.json())["generation"]
    binder = await world.metric("moorage_replica_generation", service="binder")
    return {binder, *(each.generation for each in await _states(world))} == {generation}


async def _metrics(session: aiohttp.ClientSession, world: World) -> dict[str, str]:
    """Return the gateway's samples but those that time alone changes."""
    async with session.get(f"{world.services.admin}/metrics") as response:
        lines = (await response.text()).splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if line.startswith("moorage_"))
    return {name: value for name, value in samples.items() if not _of_time(name)}


def _of_time(name: str) -> bool:
    words = ("_age_", "watch", "lease", "renew", "_created", "event_loop", "pause", "admin")
    return any(word in name for word in words)
