"""Pods that are rejected everywhere once more wait for newer state, but not for ever."""

from pathlib import Path
from typing import Any

from moorage import STATEFUL_SETS, Node, Pod, ScorePlugin
from tests.gateway.cluster.test_objects import SETS, stateful_set
from tools.inprocess.gateway import Gateway, filter_service, gateway, pod, ready, scorer_service
from tools.waiting import until

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {filter: {enabled: [{name: NodeAffinity}]}, score: {enabled: [{name: Reader}]}}
"""


class Reader(ScorePlugin):
    """Reads what no filter reads."""

    reads = (STATEFUL_SETS,)

    def score_node(self, pod: Pod, node: Node) -> float:
        return 0


async def test_changes_that_no_filter_sees_do_not_keep_a_pod_waiting(tmp_path: Path) -> None:
    config = tmp_path / "policy.yaml"
    config.write_text(POLICY)
    async with (
        filter_service() as filters,
        scorer_service(Reader) as scorer,
        gateway(tmp_path, filters=filters, scorer=scorer, config=config) as process,
    ):
        await process.node("n1")
        await ready(process)
        picky = pod(nodeSelector={"disk": "ssd"})
        assert (await process.filter(picky, "n1"))["Error"] == ""
        process.api.create(SETS, stateful_set("db"))
        await until(lambda: process.sample("moorage_cache_size", type="statefulsets.apps") == 1)
        assert (await process.filter(picky, "n1"))["Error"] == ""
        asked = process.sample("moorage_cycle_duration_seconds_count", phase="filter")
        assert asked <= 3


async def test_a_state_that_never_rests_does_not_keep_a_pod_waiting(tmp_path: Path) -> None:
    process: Gateway

    async def newer_state(request: Any) -> bool:
        if request.HasField("cycle"):
            count = process.sample("moorage_cache_size", type="nodes") + 1
            process.api.node(f"new-{count:.0f}")
            await until(lambda: process.sample("moorage_cache_size", type="nodes") == count)
        return True

    async with (
        filter_service(gate=newer_state) as filters,
        scorer_service() as scorer,
        gateway(tmp_path, filters=filters, scorer=scorer, http_timeout=2.0) as process,
    ):
        await process.node("n1")
        await ready(process)
        for _ in range(2):
            picky = pod(nodeSelector={"disk": "ssd"})
            assert (await process.filter(picky, "n1"))["Error"] == ""
