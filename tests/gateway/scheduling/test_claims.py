"""Pods that hold their node from their cycle on, alone or in a group; later cycles see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.scheduling import groups
from moorage import Nodes, Pod, ScorePlugin
from tests.gateway.scheduling.noting import decided, events
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, bind, plane, policy_of
from tools.waiting import until

POLICY = policy_of(
    "{filter: {enabled: [{name: OneNodePerPipelineRun}]}, score: {enabled: [SCORE]}}",
    "{name: OneNodePerPipelineRun, args: {isolationStrategy: colocateCompleted}}",
)

NAMES = ("n1", "n2", "n3")
ELSEWHERE = "node(s) didn't run the other pods of the PipelineRun"
OCCUPIED = "node(s) already ran another PipelineRun"


class Later(ScorePlugin):
    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        return [10.0 * i for i in range(len(nodes))]


def running(
    folder: Path, score: str = "{name: Later}", **more: Any
) -> AbstractAsyncContextManager[Gateway]:
    policy = POLICY.replace("SCORE", score)
    return plane(folder, Later, policy=policy, nodes=NAMES, binder=True, **more)


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path) as process:
        yield process


def task(process: Gateway, name: str, run: str = "") -> Object:
    """Create a pod of a run; return it as kube-scheduler sends it."""
    labels = {"tekton.dev/pipelineRun": run} if run else {}
    return process.api.pod(name, labels=labels, schedulerName="moorage")


def claims(process: Gateway) -> float:
    return process.sample("moorage_cache_size", type="claims")


async def test_the_best_node_is_claimed_and_no_other_is_offered(process: Gateway) -> None:
    answer = await process.filter(task(process, "a-1", "a"), *NAMES)
    assert answer["NodeNames"] == ["n3"]
    assert claims(process) == 1
    attempt = await decided(process, "a-1")
    assert attempt["claim"] == {"node": "n3", "plugins": ["OneNodePerPipelineRun"]}
    assert attempt["score"]["top"][0]["node"] == "n3"


async def test_a_claim_by_one_of_two_filters_is_checked_at_the_bind(tmp_path: Path) -> None:
    one = "enabled: [{name: OneNodePerPipelineRun}"
    policy = POLICY.replace("SCORE", "{name: Later}").replace(one, f"{one}, {{name: NodeAffinity}}")
    async with plane(tmp_path, Later, policy=policy, nodes=NAMES, binder=True) as process:
        run, selector = {"tekton.dev/pipelineRun": "a"}, {"disk": "ssd"}
        obj = process.api.pod("p", labels=run, schedulerName="moorage", nodeSelector=selector)
        body = {"Pod": obj, "NodeNames": NAMES}
        _, answer = await process.call("filter/OneNodePerPipelineRun", body)
        (node,) = answer["NodeNames"]
        assert "NodeAffinity rejects" in await bind(process, obj, node)


async def test_later_cycles_see_the_claim_before_the_bind(process: Gateway) -> None:
    first, second, other = (task(process, n, n[0]) for n in ("a-1", "a-2", "b-1"))
    answers = await asyncio.gather(*(process.filter(o, *NAMES) for o in (first, second, other)))
    by_run = [answer["NodeNames"] for answer in answers]
    assert by_run[0] == by_run[1] == ["n3"]
    assert by_run[2] == ["n2"]
    assert answers[2]["FailedNodes"] == {"n3": OCCUPIED}


async def test_a_pod_that_was_deleted_meanwhile_claims_nothing(process: Gateway) -> None:
    first, other = task(process, "a-1", "a"), task(process, "b-1", "b")
    await process.filter(first, *NAMES)
    process.api.delete("/api/v1/namespaces/default/pods/a-1")
    await until(lambda: claims(process) == 0)
    await process.filter(first, *NAMES)
    assert claims(process) == 0
    assert (await process.filter(other, *NAMES))["NodeNames"] == ["n3"]


async def test_pods_of_which_no_plugin_wants_it_claim_nothing(process: Gateway) -> None:
    plain = task(process, "plain")
    assert (await process.filter(plain, *NAMES))["NodeNames"] == list(NAMES)
    assert claims(process) == 0
    before = process.sample("moorage_cycle_duration_seconds_count", phase="filter")
    await until(lambda: events(process, "pods"))
    assert await bind(process, plain, "n2") == ""
    assert process.sample("moorage_cycle_duration_seconds_count", phase="filter") == before


async def test_runs_are_spread_over_equally_good_nodes(tmp_path: Path) -> None:
    async with running(tmp_path, score="") as process:
        answers = [await process.filter(task(process, f"{i}-1", f"{i}"), *NAMES) for i in range(3)]
        assert {name for answer in answers for name in answer["NodeNames"]} == set(NAMES)
        plains = [await process.filter(task(process, f"{i}-2", f"{i}"), *NAMES) for i in range(3)]
        assert [p["NodeNames"] for p in plains] == [a["NodeNames"] for a in answers]


async def test_a_new_attempt_gives_up_the_claim_of_the_one_before(process: Gateway) -> None:
    first = task(process, "a-1", "a")
    await process.filter(first, "n1")
    await process.filter(first, "n2")
    assert claims(process) == 1
    answer = await process.filter(task(process, "b-1", "b"), "n1", "n2")
    assert answer["NodeNames"] == ["n1"]


async def test_a_pod_whose_attempt_failed_after_the_cycle_gives_up_its_claim(
    process: Gateway,
) -> None:
    first = task(process, "a-1", "a")
    await process.filter(first, "n1")
    assert claims(process) == 1
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulerError",
        "message": "running Reserve plugin: no",
        "lastTransitionTime": "2026-11-23T00:00:00Z",
    }
    process.api.set_status("a-1", conditions=[condition])
    await until(lambda: claims(process) == 0)
    again = process.api.read_pod("a-1")
    await process.filter(again, "n1")
    process.api.set_status("a-1", conditions=[condition], message="later")
    await until(lambda: events(process, "pods") == 3)
    assert claims(process) == 1, "that was the attempt before"


async def test_a_pod_that_the_api_server_does_not_have_claims_nothing(process: Gateway) -> None:
    obj = task(process, "a-1", "a")
    gone = {**obj, "metadata": {**obj["metadata"], "name": "gone", "uid": "uid-gone"}}
    assert (await process.filter(gone, *NAMES))["NodeNames"] == list(NAMES)
    assert claims(process) == 0


async def test_a_claim_becomes_a_bind(process: Gateway) -> None:
    first = task(process, "a-1", "a")
    await process.filter(first, *NAMES)
    before = process.sample("moorage_cycle_duration_seconds_count", phase="filter")
    assert await bind(process, first, "n3") == ""
    await until(lambda: process.sample("moorage_cache_size", type="assumed_pods") == 0)
    assert process.sample("moorage_cycle_duration_seconds_count", phase="filter") == before
    assert (await process.filter(task(process, "a-2", "a"), *NAMES))["NodeNames"] == ["n3"]


async def test_a_bind_after_the_claim_was_lost_must_not_break_the_rule(tmp_path: Path) -> None:
    async with running(tmp_path, claim_ttl=1.0) as process:
        late, follower = task(process, "a-1", "a"), task(process, "a-2", "a")
        await process.filter(late, "n1")
        await until(lambda: claims(process) == 0)
        await process.filter(follower, "n2")
        assert await bind(process, follower, "n2") == ""

        error = await bind(process, late, "n1")
        assert error == f"checked again at the bind, OneNodePerPipelineRun rejects: {ELSEWHERE}"
        assert process.sample("moorage_bind_checks_total", outcome="rejected") == 1
        attempt = await decided(process, "a-1")
        assert attempt["bindCheck"]["cause"] == "claim lost"
        assert attempt["bindCheck"]["error"] == error
        assert f"the bind to n1 was refused: {error}" in attempt["why"]
        assert await bind(process, late, "n2") == ""
        assert process.sample("moorage_bind_checks_total", outcome="passed") == 1


async def test_binds_of_pods_without_a_cycle_here_are_checked(process: Gateway) -> None:
    first, second = task(process, "a-1", "a"), task(process, "a-2", "a")
    await until(lambda: events(process, "pods") == 2)
    assert await bind(process, first, "n1") == ""
    assert ELSEWHERE in await bind(process, second, "n2")
    assert await bind(process, second, "n1") == ""


async def test_of_two_binds_at_once_only_one_decides_where_the_run_goes(process: Gateway) -> None:
    first, second = task(process, "a-1", "a"), task(process, "a-2", "a")
    await until(lambda: events(process, "pods") == 2)
    errors = await asyncio.gather(bind(process, first, "n1"), bind(process, second, "n2"))
    assert sum(error == "" for error in errors) == 1


async def test_a_pod_that_does_not_exist_is_not_bound(process: Gateway) -> None:
    stranger = {"metadata": {"name": "x", "namespace": "default", "uid": "uid-x"}}
    assert "not found" in await bind(process, stranger, "n1")


def member(process: Gateway, name: str, run: str, group: str = "ring") -> Object:
    """Create a pod of a group, which needs a node of its own if its run is its own."""
    return process.api.pod(
        name,
        labels={"tekton.dev/pipelineRun": run},
        schedulerName="moorage",
        schedulingGroup={"podGroupName": group},
    )


async def place(process: Gateway, pods: list[Object], *names: str) -> list[str]:
    """Filter pods one after another; return what each claims, "" for none."""
    answers = [await process.filter(one, *names) for one in pods]
    return [(answer["NodeNames"] or [""])[0] for answer in answers]


async def test_a_group_of_which_a_member_was_rejected_is_over_with_the_next_pod(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b", "c")]
        assert await place(process, ring, "n1", "n2") == ["n2", "n1", ""]
        assert await place(process, [task(process, "single", "s")], "n1", "n2") == ["n2"]


async def test_a_group_that_was_given_up_leaves_no_claim(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=0.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        single = task(process, "single", "s")
        assert await place(process, ring, "n1", "n2") == ["n2", "n1"]
        assert await place(process, [single], "n1", "n2") == [""], "the members may still be bound"
        await until(lambda: claims(process) == 0)
        assert await place(process, [single], "n1", "n2") == ["n2"]


async def test_a_group_whose_members_are_filtered_keeps_its_claims(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=0.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        assert await place(process, ring[:1], *NAMES) == ["n3"]
        answer = await process.filter(ring[1], *NAMES)
        assert answer["FailedNodes"] == {"n3": OCCUPIED}
        assert await bind(process, ring[0], "n3") == ""
        assert await bind(process, ring[1], "n2") == ""


async def test_the_next_pass_of_a_group_begins_without_claims(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b", "c")]
        first = await place(process, ring, *NAMES)
        assert await place(process, ring, *NAMES) == first == ["n3", "n2", "n1"]
        # Only members of this pass count: c would find no node beside those of the one before.
        assert await place(process, ring[:1], *NAMES) == ["n3"]
        assert claims(process) == 1


async def test_a_bind_to_the_placement_of_an_earlier_pass_drops_the_later_one(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        assert await place(process, ring, "n1", "n2") == ["n2", "n1"]
        assert await bind(process, ring[0], "n1") == ""
        assert await bind(process, ring[1], "n2") == ""


async def test_groups_of_other_namespaces_and_names_do_not_touch_each_other(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        first, second = member(process, "a", "a"), member(process, "b", "b", group="other")
        assert await place(process, [first, second], "n1", "n2") == ["n2", "n1"]
        assert await place(process, [first], "n1", "n2") == ["n2"]
        assert claims(process) == 2


async def test_binds_of_a_group_that_fail_wait_longer_each_time(
    tmp_path: Path, sleeps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.0123  # which nothing else waits
    monkeypatch.setattr(groups, "FIRST_PAUSE", pause)

    def waited() -> list[float]:
        found = [seconds for seconds in sleeps if seconds in (pause, 2 * pause)]
        sleeps.clear()
        return found

    async with running(tmp_path, group_bind_wait=60.0) as process:
        (one,) = [member(process, "a", "a")]
        others = [task(process, "x", "x")]
        assert await place(process, others, "n1") == ["n1"]
        for expected in ([], [pause]):
            assert OCCUPIED in await bind(process, one, "n1")
            assert waited() == expected
        assert await bind(process, one, "n2") == ""
        assert waited() == [2 * pause]
        assert await bind(process, one, "n2") == ""
        assert waited() == [], "after a success nothing waits"
