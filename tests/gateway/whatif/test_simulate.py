"""`POST /simulate` and `POST /simulate/filter`: the same answers as the edge, and no trace."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from cli.up.processes import free_ports
from gateway.replicas.crashes import LOST_AGAIN
from gateway.whatif import simulate
from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.serve import running as serving
from moorage_host.rpc.settings import CycleSettings
from services.filter.plugins import BUILT_INS as FILTERS
from services.filter.servicer import FilterServicer
from services.filter.servicer import filter_service as filter_definition
from tests.manifests import node, pod
from tools.inprocess.gateway import SETTINGS, Gateway, Held, Options, filter_service, plane
from tools.waiting import until

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: moorage
  plugins: {multiPoint: {enabled: [{name: Cool}, {name: NodeResourcesFit}, {name: ByNumber}]}}
- schedulerName: scores
  plugins: {multiPoint: {enabled: [{name: ByNumber}]}}
"""

NAMES = ("n1", "n2", "n3")


class Cool(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("node is too hot") if "hot" in node.labels else None


class ByNumber(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.name[1:].partition("-")[0])


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with plane(tmp_path, Cool, ByNumber, policy=POLICY, nodes=NAMES) as process:
        yield process


async def post(process: Gateway, path: str, body: Any) -> tuple[int, Any]:
    options = {"data": io.BytesIO(body)} if isinstance(body, bytes) else {"json": body}
    async with process.session.post(f"{process.admin}{path}", **options) as response:
        return response.status, await response.json()


async def simulated(process: Gateway, **body: Any) -> Any:
    status, answer = await post(process, "/simulate", body)
    assert status == 200, answer
    return answer


async def filtered(process: Gateway, **body: Any) -> Any:
    status, answer = await post(process, "/simulate/filter", body)
    assert status == 200, answer
    return answer


async def test_the_answer_is_about_the_state_that_the_gateway_shows(process: Gateway) -> None:
    for number in range(5):
        labels = {} if number % 2 else {"hot": "yes"}
        process.api.label("/api/v1/nodes/n1", **labels)

        async def shown(expected: dict[str, str] = labels) -> bool:
            _, answer = await process.get("/nodes/n1")
            return bool(answer["labels"] == expected)

        await until(shown)
        answer = await filtered(process, Pod=pod(cpu="1"), Nodes=None, NodeNames=["n1", "n2"])
        assert sorted(answer["NodeNames"]) == (["n2"] if labels else ["n1", "n2"])


async def test_names_are_answered_as_the_edge_answers_them(process: Gateway) -> None:
    for names in (NAMES, ("n2",), ("n3", "gone", "n1"), ("gone",)):
        for cpu in ("1", "5"):
            asked = {"Pod": pod(cpu=cpu), "Nodes": None, "NodeNames": list(names)}
            _, edge = await process.call("filter", asked)
            assert await filtered(process, **asked) == edge


async def test_large_questions_are_read_one_after_another(
    process: Gateway, monkeypatch: pytest.MonkeyPatch, sleeps: list[float]
) -> None:
    body = json.dumps({"pod": pod(cpu="1")}).encode()
    monkeypatch.setattr(simulate, "BYTES_PER_SECOND", len(body) / 600)
    assert (await post(process, "/simulate", body))[0] == 200
    second = asyncio.create_task(post(process, "/simulate", body))
    await until(lambda: any(500 < seconds <= 600 for seconds in sleeps))
    second.cancel()


async def test_nodes_that_do_not_exist_are_asked_about_as_an_autoscaler_does(
    process: Gateway,
) -> None:
    """Templates of node groups: one large enough, one too small, one that a plugin rejects."""
    nodes = [
        node("group-large", cpu="16"),
        node("group-small", cpu="1"),
        node("group-hot", cpu="16", hot=""),
    ]
    asked = {"Pod": pod(cpu="8"), "Nodes": {"items": nodes}, "NodeNames": None}
    answer = await filtered(process, **asked)
    assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == ["group-large"]
    assert answer["FailedAndUnresolvableNodes"] == {
        "group-small": "Insufficient cpu",
        "group-hot": "node is too hot",
    }
    _, edge = await process.call("filter", asked)
    assert answer == edge


async def test_a_node_that_exists_counts_as_the_caller_sees_it(process: Gateway) -> None:
    nodes = [node("n1", cpu="16"), node("n2")]
    asked = {"Pod": pod(cpu="8"), "Nodes": {"items": nodes}, "NodeNames": ["n1", "n2"]}
    answer = await filtered(process, **asked)
    assert answer["NodeNames"] == ["n1"]
    assert (await filtered(process, Pod=pod(cpu="8"), NodeNames=["n1", "n2"]))["NodeNames"] == []


async def test_the_verdicts_and_the_ranking_are_there_by_plugin_and_in_words(
    process: Gateway,
) -> None:
    await process.node("n4")
    answer = await simulated(
        process, pod=pod(cpu="1"), nodes=[node("n1"), node("n2", hot=""), node("n9")]
    )
    assert answer["feasible"] == ["n1", "n9"]
    (verdict,) = answer["rejected"]
    assert verdict == {
        "node": "n2", "verdict": "rejected", "plugin": "Cool", "reason": "node is too hot",
        "unresolvable": True,
    }  # fmt: skip
    assert [(each["node"], each["score"]) for each in answer["ranking"]] == [("n9", 9), ("n1", 1)]
    assert answer["ranking"][0]["plugins"][0]["plugin"] == "ByNumber"
    assert answer["words"][0].startswith("Moorage prefers n9 to n1")
    assert (await simulated(process, pod=pod(cpu="1")))["nodes"] == 4
    tight = await simulated(process, pod=pod(cpu="5"))
    assert tight["words"][0] == (
        "no node suits it: NodeResourcesFit rejected 4 of 4: Insufficient cpu"
    )
    assert tight["ranking"] == []


async def test_another_profile_can_be_asked(process: Gateway) -> None:
    answer = await simulated(process, pod=pod(cpu="5"), nodes=["n1", "n2"], profile="scores")
    assert (answer["feasible"], answer["profile"]) == (["n1", "n2"], "scores")
    status, wrong = await post(process, "/simulate", {"pod": pod(cpu="much")})
    assert (status, wrong["error"].startswith("filter service: ")) == (400, True)
    assert "much" in wrong["error"], "which is no amount"
    status, wrong = await post(process, "/simulate", {"pod": pod(cpu="1"), "profile": "none"})
    assert status == 400
    assert "name one of these as `profile`" in wrong["error"]
    assert "moorage, scores" in wrong["error"]


WRONG = (
    (b"{", 400, "Input data was truncated - at `$`"),
    (b"{}", 400, "missing required field `pod` - at `$`"),
    (b'{"pod": 5}', 400, "Expected `object` - at `$.pod`"),
    (b'{"pod": {"spec": {"containers": 5}}}', 400, "at `$.pod.spec.containers`"),
    (b'{"pod": {"spec": {"schedulerName": "moorage"}}, "nodes": [5]}', 400, "at `$.nodes[0]`"),
    (b'{"pod": {"spec": {"schedulerName": "moorage"}}, "nodes": ["n1", {}]}', 400, "$.nodes"),
    (b'{"pod": {}, "node": []}', 400, "unknown field `node`"),
    (b" " * (5 << 20), 413, "more than 4194304 bytes"),
)


async def test_what_is_wrong_is_said_with_its_path(process: Gateway) -> None:
    for body, status, text in WRONG:
        answered, answer = await post(process, "/simulate", body)
        assert (answered, text in answer["error"]) == (status, True), answer
        answered, as_extender = await post(process, "/simulate/filter", body)
        assert answered == 200
        assert as_extender["Error"].startswith("moorage: the request was not understood")


async def test_more_questions_than_may_wait_are_refused(tmp_path: Path) -> None:
    options: Options = {
        "policy": POLICY,
        "nodes": NAMES,
        "simulate_calls": 1,
        "simulate_waiting": 1,
    }
    async with plane(tmp_path, Cool, ByNumber, **options) as process:
        sent = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield json.dumps({"pod": pod(cpu="1")}).encode()
            await sent.wait()

        async def ask() -> tuple[int, Any]:
            url = f"{process.admin}/simulate"
            async with process.session.post(url, data=body()) as response:
                return response.status, await response.json()

        tasks = [asyncio.create_task(ask()) for _ in range(4)]
        refused = asyncio.as_completed(tasks)
        refusals = [await next(refused), await next(refused)]  # while nothing is answered
        sent.set()
        answers = await asyncio.gather(*tasks)
    assert sorted(status for status, _ in answers) == [200, 200, 429, 429]
    assert [status for status, _ in refusals] == [429, 429]
    assert "ask again later" in refusals[0][1]["error"]


async def test_a_question_that_may_end_replicas_is_asked_of_two_at_most(tmp_path: Path) -> None:
    asked: list[Any] = []

    class Ends(FilterServicer):
        async def Filter(self, request: Any, context: Any) -> Any:
            asked.append(request)
            raise CallError(grpc.StatusCode.UNAVAILABLE, "the process has ended")

    registry = Registry(FilterPlugin, (*FILTERS, Cool))
    service = replace(
        filter_definition(CycleSettings(), registry), create=lambda: Ends(registry), limit=None
    )
    async with (
        serving(service, SETTINGS) as server,
        plane(tmp_path, ByNumber, filters=server.grpc, policy=POLICY, nodes=NAMES) as process,
    ):
        status, answer = await post(process, "/simulate", {"pod": pod(cpu="1")})
        assert (status, len(asked)) == (503, 2), answer


async def test_a_pod_that_ended_replicas_is_not_asked_about(tmp_path: Path) -> None:
    held = Held()
    (port,) = free_ports(1)
    ready = "moorage_replicas_ready"
    options: Options = {"policy": POLICY, "nodes": NAMES, "waits": False, "http_timeout": 60.0}
    async with plane(tmp_path, ByNumber, filters=f"127.0.0.1:{port}", **options) as process:
        call: asyncio.Task[Any] | None = None
        for count in range(3):  # processes, of which the first two end
            async with filter_service(Cool, port=port, gate=held):
                await until(lambda: process.sample(ready, service="filter") == 1)
                if call is None:
                    call = asyncio.create_task(process.filter(pod(cpu="1"), *NAMES))
                if count < 2:
                    await until(lambda: len(held.came) > count)  # noqa: B023 - it is awaited here
                    continue
                refused = "a replica of filter ended while it worked on this pod, 2 times"
                assert LOST_AGAIN in (await call)["Error"]
                assert refused in (await process.filter(pod(cpu="1"), *NAMES))["Error"]
                status, answer = await post(process, "/simulate", {"pod": pod(cpu="1")})
                assert (status, refused in str(answer)) == (503, True), answer
                other = pod(cpu="1") | {"metadata": {"name": "other", "namespace": "default"}}
                await simulated(process, pod=other)


async def test_a_pod_of_the_cluster_is_compared_with_what_might_be(process: Gateway) -> None:
    """More nodes, a filter plugin that is off, another weight; nothing of it happens."""
    process.api.label("/api/v1/nodes/n3", hot="")
    made = pod(cpu="3")
    process.api.pod("web", schedulerName="moorage", containers=made["spec"]["containers"])
    process.api.pod("there", nodeName="n2", containers=made["spec"]["containers"])

    async def compared(query: str) -> tuple[Any, Any]:
        status, answer = await process.get(f"/simulate/default/web{query}")
        assert status == 200, answer
        return answer["before"], answer["after"]

    async def seen() -> bool:
        before, _ = await compared("")
        return [each["reason"] for each in before["rejected"]] != [] and before["feasible"] == 1

    await until(seen)
    before, after = await compared("")
    assert before == after
    assert (before["best"], before["nodes"]) == ("n1", 3)
    assert {(each["plugin"], *each["names"]) for each in before["rejected"]} == {
        ("Cool", "n3"),
        ("NodeResourcesFit", "n2"),
    }
    before, after = await compared("?nodes=3&like=n2")
    assert (after["nodes"], after["feasible"]) == (6, 4)
    assert (after["best"], {each["rank"] for each in after["top"]}) == ("", {1, 4})
    assert after["words"][0].startswith("kube-scheduler chooses among 3 nodes that tie for ")
    _, after = await compared("?off=Cool")
    assert (after["feasible"], after["best"]) == (2, "n3")
    assert {(each["plugin"], each["nodes"]) for each in after["rejected"]} == {
        ("NodeResourcesFit", 1)
    }
    _, after = await compared("?off=Cool&off=NodeResourcesFit&weight=ByNumber:9")
    assert (after["feasible"], after["best"]) == (3, "n3")
    assert after["top"][0]["plugins"][-1] == {
        "plugin": "ByNumber",
        "raw": 3.0,
        "normalized": 3.0,
        "weight": 9,
    }
    _, after = await compared("?off=ByNumber&off=Cool")
    assert (after["top"], after["feasible"]) == ([], 2)  # no plugin has an opinion
    for query, part in (
        ("?off=None", "it has Cool, NodeResourcesFit"),
        ("?weight=ByNumber:-1", "from 0 to 1000"),
        ("?nodes=101&like=n1", "from 0 to 100"),
        ("?nodes=1&like=n9", "no node n9"),
        ("?colour=red", "no parameter colour"),
    ):
        status, answer = await process.get(f"/simulate/default/web{query}")
        assert (status, part in answer["error"]) == (400, True), answer
    assert (await process.get("/simulate/default/none"))[0] == 400
    # A pod that Moorage is not asked about, as if it were.
    process.api.pod("other", schedulerName="typo", containers=made["spec"]["containers"])
    status, answer = await process.get("/simulate/default/other")
    assert (status, answer["profile"], answer["before"]["best"]) == (200, "moorage", "n1"), answer
