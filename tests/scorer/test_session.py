"""Sessions with the scorer service: shards, and scores that are to be normalised."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc.aio
import msgspec
import numpy as np
import pytest

from gateway.replicas.reading import read_opinions
from moorage import Node, Pod, ScorePlugin, Scores
from moorage.v1 import replica_pb2, types_pb2
from moorage.v1 import scorer_pb2 as pb
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub
from tools.inprocess.gateway import scorer_service

PLUGIN = {"name": "ByNumber", "failurePolicy": "Abort", "timeBudgetSeconds": 10}
POLICY = {"profiles": [{"name": "moorage", "plugins": [PLUGIN]}]}


class ByNumber(ScorePlugin):
    """Scores nodes by their number, and the best 100."""

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.name[1:])

    def normalize(self, scores: Scores) -> Scores:
        best: float = scores.max()
        return 100 * scores / best


POD = {"metadata": {"name": "p", "uid": "1"}, "spec": {"schedulerName": "moorage"}}


def state_of(count: int) -> types_pb2.State:
    """Return a state with the nodes n1 and so on, in the rows from 0 on."""
    nodes = [msgspec.json.encode({"metadata": {"name": f"n{i}"}}) for i in range(1, count + 1)]
    return types_pb2.State(
        generation=1,
        full=True,
        policy=types_pb2.Policy(revision="1", json=msgspec.json.encode(POLICY)),
        nodes=[types_pb2.NodeRow(row=row, json=node) for row, node in enumerate(nodes)],
    )


async def ask(**more: Any) -> replica_pb2.CycleResult:
    """Return the result of a cycle on the nodes n1 to n4 in the rows 0 to 3."""
    cycle = types_pb2.Cycle(
        id=1,
        profile="moorage",
        pod=types_pb2.Pod(json=msgspec.json.encode(POD)),
        candidates=b"\x0f",
        **more,
    )
    cycle.timeout.FromSeconds(10)

    async def requests() -> AsyncIterator[replica_pb2.SessionRequest]:
        yield replica_pb2.SessionRequest(state=state_of(4), cycle=cycle)

    async with scorer_service(ByNumber) as address, grpc.aio.insecure_channel(address) as channel:
        answers = ReplicaServiceStub(channel).Session(requests())
        async for answer in answers:
            assert not answer.acknowledgement.policy_error
            if answer.HasField("result"):
                return answer.result
    raise AssertionError("no result")


def raw(*values: float) -> Sequence[types_pb2.PluginScores]:
    return [types_pb2.PluginScores(plugin="ByNumber", raw=np.array(values, "<f8").tobytes())]


@pytest.mark.parametrize(
    ("values", "bytes_of_raw", "bytes_of_normalized"),
    [((25, 50, 75, 100), 16, 0), ((1, 2, 3, 4), 16, 16), ((0.1, 0.2, 0.3, 0.4), 32, 16)],
    ids=["as they are", "normalised", "in double precision"],
)
async def test_the_scores_of_all_nodes_are_exact_and_no_longer_than_that_takes(
    values: Sequence[float], bytes_of_raw: int, bytes_of_normalized: int
) -> None:
    result = await ask(raw=raw(*values))
    (sent,) = result.scores
    assert (len(sent.raw), len(sent.normalized)) == (bytes_of_raw, bytes_of_normalized)
    (scores,) = read_opinions(result)
    assert scores.raw.tolist() == list(values)
    assert scores.normalized == pytest.approx(100 * np.array(values) / max(values))


@pytest.mark.parametrize(
    "values", [(1, 2, 3), (1, 2, 3, float("nan")), ()], ids=["too few", "not finite", "none"]
)
async def test_gathered_scores_that_cannot_be_right_are_refused(values: Sequence[float]) -> None:
    result = await ask(raw=raw(*values))
    assert result.status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "one finite number for each node" in result.status.message


@pytest.mark.parametrize("request_", [{"shard": b"\xff" * (4 << 20)}, {"shard": b"\0" * 9}])
async def test_a_shard_that_is_longer_than_the_table_costs_nothing(request_: Any) -> None:
    (scores,) = (await ask(**request_)).scores
    assert len(scores.raw) == (32 if request_["shard"][0] else 0)


@pytest.mark.parametrize("count", [4, 300])
async def test_scores_by_hand_are_those_of_one_cycle_however_many_steps_they_take(
    count: int,
) -> None:
    async def requests() -> AsyncIterator[replica_pb2.SessionRequest]:
        yield replica_pb2.SessionRequest(state=state_of(count))
        await asyncio.Event().wait()

    async with scorer_service(ByNumber) as address, grpc.aio.insecure_channel(address) as channel:
        replica: Any = ReplicaServiceStub(channel)
        scorer: Any = ScorerServiceStub(channel)
        session = replica.Session(requests())
        assert (await session.read()).HasField("hello")
        assert (await session.read()).acknowledgement.generation == 1
        pod = types_pb2.Pod(json=msgspec.json.encode(POD))
        answer = await scorer.Score(pb.ScoreRequest(pod=pod), timeout=20)
        session.cancel()
    assert [each.node for each in answer.nodes] == [f"n{i}" for i in range(count, 0, -1)]
    totals = [each.total for each in answer.nodes]
    assert totals == pytest.approx([100 * i / count for i in range(count, 0, -1)])
    assert answer.nodes[0].plugins[0].raw == count
    assert [each.plugin for each in answer.plugins] == ["ByNumber"]
