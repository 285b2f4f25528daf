"""The gateway has the binder run the bind plugins of its policy."""

import json
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import free_ports
from gateway.cycle.decision import (
    Decision,
    FilterRecord,
    NodeScoreRecord,
    PluginScoreRecord,
    ScoreRecord,
)
from gateway.decisions.sentences import summary
from moorage import DecisionSummary, ScoredNode
from tools.inprocess.gateway import Gateway, Options, bind, binder_service, gateway, plane, ready
from tools.waiting import until

NOW = datetime.now(UTC)
HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n- "
ANNOTATED = (
    HEADER + "plugins: {bind: {enabled: [{name: DecisionAnnotation}]},"
    " score: {enabled: [{name: NodeResourcesLeastAllocated}]}}\n"
)
SCANNED = HEADER + "plugins: {multiPoint: {enabled: [{name: Scan}]}}\n"
MISSPELT = HEADER + "plugins: {multiPoint: {enabled: [{name: DecisionAnotation}]}}\n"

SCAN = """
from moorage import Binding, BindPlugin, Refusal


class Scan(BindPlugin):
    "Refuses pods that were not scanned."

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        return None if "scanned" in binding.pod.labels else Refusal("the scan is not over")
"""


def running(folder: Path, policy: str, **more: Any) -> AbstractAsyncContextManager[Gateway]:
    """Run everything with a policy; the binder only if *more* says so."""
    options: Options = {"policy": policy, "waits": False, "resolve_interval": 0.1, **more}
    return plane(folder, **options)


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    file = tmp_path / "scan.py"
    file.write_text(SCAN)
    return file


async def problem_of(process: Gateway, check: str) -> str:
    _, answer = await process.get("/readyz")
    found = {each["name"]: each["reason"] for each in answer["checks"]}
    return str(found.get(check, ""))


async def told(process: Gateway, check: str, text: str) -> None:
    async def is_said() -> bool:
        return text in await problem_of(process, check)

    await until(is_said)


async def test_the_decision_is_written_onto_the_pod(tmp_path: Path) -> None:
    async with running(tmp_path, ANNOTATED, binder=True) as process:
        await process.node("n1", "n2")
        await ready(process)
        obj = process.api.pod("web", schedulerName="moorage")
        await process.filter(obj, "n1", "n2")
        scores = await process.prioritize(obj, "n1", "n2")
        assert await bind(process, obj, "n2") == ""
        text = process.api.read_pod()["metadata"]["annotations"]["moorage.io/decision"]
        written = json.loads(text)
        _, decision = await process.get("/decisions/default/web")
        newest = decision["attempts"][0]
    assert scores
    assert (written["nodes"], written["feasible"]) == (2, 2)
    assert written["policyRevision"] == newest["policyRevision"]
    assert written["generation"] == newest["generation"]
    totals = {each["node"]: round(each["total"], 1) for each in newest["score"]["top"]}
    assert written["winner"]["node"] == "n2"
    assert written["winner"]["score"] == totals["n2"]
    assert written["runnerUp"] == {"node": "n1", "score": totals["n1"]}


async def test_an_event_says_why_without_a_bind_plugin(tmp_path: Path) -> None:
    policy = HEADER + "plugins: {score: {enabled: [{name: NodeResourcesLeastAllocated}]}}\n"
    async with running(tmp_path, policy, binder={"events": "all"}) as process:
        await process.node("n1", "n2")
        await ready(process)
        obj = process.api.pod("web", schedulerName="moorage")
        await process.filter(obj, "n1", "n2")
        await process.prioritize(obj, "n1", "n2")
        assert await bind(process, obj, "n2") == ""
        assert "annotations" not in process.api.read_pod()["metadata"]
        note = await event_note(process)
    why = "kube-scheduler chose n2 among 2 nodes that tie for Moorage's best total, 97"
    assert note == f"Successfully assigned default/web to n2: {why}"


async def event_note(process: Gateway) -> str:
    url = f"{process.api.server.url}/apis/events.k8s.io/v1/namespaces/default/events"
    items: list[Any] = []

    async def is_there() -> bool:
        async with process.session.get(url) as response:
            items[:] = (await response.json())["items"]
        return bool(items)

    await until(is_there)
    return str(items[0]["note"])


async def test_a_refusal_is_told_and_frees_the_place(tmp_path: Path, scan: Path) -> None:
    async with running(tmp_path, SCANNED, binder={"plugin": (scan,)}) as process:
        await process.node("n1")
        await ready(process)
        obj = process.api.pod("web", schedulerName="moorage")
        process.api.pod("later", nodeName="n1")  # once it is seen, so is the one before
        await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
        error = await bind(process, obj)
        assert error == (
            "binder service: pod default/web was not bound: plugin Scan: the scan is not over"
        )
        assert process.sample("moorage_cache_size", type="assumed_pods") == 0
        process.api.label("/api/v1/namespaces/default/pods/web", scanned="yes")
        assert await bind(process, obj) == ""
        assert process.api.node_of() == "n1"


async def test_pods_that_the_gateway_has_not_seen_have_their_plugins_too(
    tmp_path: Path, scan: Path
) -> None:
    async with running(tmp_path, SCANNED, binder={"plugin": (scan,)}) as process:
        await process.node("n1")
        await ready(process)
        process.api.fault("watch", "pods", status=500, times=1000)
        obj = process.api.pod("web", schedulerName="moorage")
        assert "the scan is not over" in await bind(process, obj)


@pytest.mark.parametrize("policy", [ANNOTATED, SCANNED])
async def test_no_pod_is_bound_without_the_plugins_that_it_may_have(
    tmp_path: Path, port: int, scan: Path, policy: str
) -> None:
    (tmp_path / "policy.yaml").write_text(policy)
    async with (
        gateway(
            tmp_path,
            binder=f"127.0.0.1:{port}",
            config=tmp_path / "policy.yaml",
            http_timeout=0.5,
        ) as process,
        binder_service(tmp_path, scan, port=port),
    ):
        await process.node("n1")
        obj = process.api.pod("web", schedulerName="moorage")
        for _ in range(2):  # the second finds the binder known
            error = await bind(process, obj)
            assert error == "Moorage has no policy yet; see /readyz of its gateway"
        assert process.api.node_of() is None


async def test_a_plugin_that_nobody_has_is_reported_until_a_binder_has_it(
    tmp_path: Path, port: int, scan: Path
) -> None:
    async with running(tmp_path, SCANNED, binder=f"127.0.0.1:{port}", http_timeout=0.5) as process:
        await told(process, "policy", "waiting for the binder to say whether it has Scan")
        obj = process.api.pod("web", schedulerName="moorage")
        assert await bind(process, obj) == "Moorage has no policy yet; see /readyz of its gateway"
        async with binder_service(tmp_path, port=port):
            await told(process, "policy", "policy.yaml:4: profiles[0].plugins.multiPoint")
            assert "unknown plugin `Scan`" in await problem_of(process, "policy")
        async with binder_service(tmp_path, scan, port=port):
            await ready(process)


async def test_names_of_the_binders_plugins_are_suggested(tmp_path: Path) -> None:
    async with running(tmp_path, MISSPELT, binder=True) as process:
        await told(process, "policy", "did you mean `DecisionAnnotation`?")


def test_a_decision_in_short_names_winner_and_runner_up() -> None:
    def node(name: str, total: float, **plugins: tuple[float, int]) -> NodeScoreRecord:
        scores = [
            PluginScoreRecord(plugin=plugin, raw=0, normalized=normalized, weight=weight)
            for plugin, (normalized, weight) in plugins.items()
        ]
        return NodeScoreRecord(node=name, total=total, plugins=scores)

    decision = Decision(
        namespace="default",
        pod="web",
        uid="u",
        time=NOW,
        profile="moorage",
        policy_revision="abc",
        generation=7,
        filter=FilterRecord(nodes=5, feasible=3, seconds=0),
        score=ScoreRecord(
            nodes=3,
            seconds=0,
            top=[node("n1", 90), node("n2", 80, A=(50, 1), B=(40, 3), C=(100, 1)), node("n3", 70)],
        ),
    )
    found = summary(decision, "n2")
    assert found == DecisionSummary(
        winner=ScoredNode(node="n2", score=80, plugins={"B": 40, "C": 100, "A": 50}),
        runner_up=ScoredNode(node="n1", score=90),
        reason=(
            "kube-scheduler chose n2, 80, by its own scores or by lot: after rounding it ties "
            "with n1, 90"
        ),
        nodes=5,
        feasible=3,
        policy_revision="abc",
        generation=7,
    )
    assert list(found.winner.plugins) == ["B", "C", "A"]
    assert summary(decision, "n9").winner == ScoredNode(node="n9")
    bare = Decision(namespace="default", pod="web", uid="u", time=NOW, profile="moorage")
    assert summary(bare, "n1") == DecisionSummary(winner=ScoredNode(node="n1"))
