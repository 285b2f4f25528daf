"""Processes die, and no pod is lost or bound twice."""

import asyncio
import signal

import pytest

from tests.stack.stack import Stack, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS = 200


@pytest.mark.parametrize("victim", ["filter", "scorer-1", "binder"])
async def test_all_pods_are_bound_once_though_a_process_is_killed(
    stack: Stack, victim: str
) -> None:
    bound: dict[str, list[str]] = {}
    version = (await stack.cluster.pods())[1]
    watch = asyncio.create_task(_note_places(stack, version, bound))
    await stack.create([node(f"n{i}") for i in range(10)], [pod(f"p{i}") for i in range(PODS)])
    await stack.all_bound(PODS // 10)

    stack.kill(victim)
    await stack.all_bound(PODS)

    watch.cancel()
    assert any(f"{victim} was killed by SIGKILL" in message for message in stack.messages)
    assert len(bound) == PODS
    assert all(len(places) == 1 for places in bound.values())


async def test_a_filter_that_restarts_costs_no_cycle(stack: Stack) -> None:
    await stack.create([node("n1"), node("n2")])
    opened = await stack.metric("moorage_sessions_opened_total", service="filter")
    failed = await stack.metric("moorage_extender_requests_total", verb="filter", result="failed")

    stack.kill("filter")
    answers = [await stack.filter(pod(f"p{i}"), ["n1", "n2"]) for i in range(20)]

    assert all(answer["NodeNames"] == ["n1", "n2"] for answer in answers)
    assert await stack.metric("moorage_sessions_opened_total", service="filter") == opened + 1
    assert failed == await stack.metric(
        "moorage_extender_requests_total", verb="filter", result="failed"
    )


async def test_a_scorer_that_hangs_gets_no_more_cycles(stack: Stack) -> None:
    async def both_take_part() -> bool:
        return await stack.metric("moorage_replicas_ready", service="scorer") == 2

    await stack.create([node("n1"), node("n2")])
    await stack.until(both_take_part)
    stack.kill("scorer-2", signal.SIGSTOP)
    try:
        answers = [await stack.prioritize(pod(f"hung-{i}"), ["n1", "n2"]) for i in range(6)]
    finally:
        stack.kill("scorer-2", signal.SIGCONT)
    assert answers.count([]) == 1
    assert all(len(answer) == 2 for answer in answers if answer)

    await stack.until(both_take_part)


async def test_the_gateway_comes_back_and_goes_on(stack: Stack) -> None:
    await stack.create([node(f"n{i}") for i in range(5)], [pod(f"p{i}") for i in range(50)])
    await stack.all_bound(5)

    stack.kill("gateway")

    assert len(await stack.all_bound(50)) == 50


async def test_a_gateway_that_is_told_to_stop_finishes_its_binds(stack: Stack) -> None:
    obj, *_ = await stack.create([node("n1")], [pod("p", schedulerName="nobody")])
    await stack.fault(verb="create", resource="pods/binding", delaySeconds=1)
    bind = asyncio.create_task(stack.bind(obj, "n1"))

    async def under_way() -> bool:
        return await stack.metric("moorage_cache_size", type="assumed_pods") == 1

    await stack.until(under_way)
    stack.kill("gateway", signal.SIGTERM)

    assert await bind == {"Error": ""}
    assert (await stack.places())["p"] == "n1"

    async def restarted() -> bool:
        return any("gateway ended with exit code 0" in message for message in stack.messages)

    await stack.until(restarted)
    await stack.answers()


async def _note_places(stack: Stack, version: str, bound: dict[str, list[str]]) -> None:
    async for _, obj in stack.cluster.watch(version):
        place = obj["spec"].get("nodeName")
        places = bound.setdefault(obj["metadata"]["uid"], [])
        if place and place not in places:
            places.append(place)
