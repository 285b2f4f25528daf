"""Processes die, hang or are told to stop, and cycles and binds go on.

That no pod is lost or bound twice is in tests/scenarios/test_cycles.py.
"""

import asyncio
import itertools
import signal

import pytest

from cli.shared.manifests import Object
from tests.manifests import pod
from tests.stack.stack import Stack
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


_numbers = itertools.count(1)

PROBLEM = (
    "plugin Culprit failed in filter_node: a replica of filter ended (SIGSEGV) while this plugin "
    "ran for this pod, 2 times; tried again after 30 s"
)


def pod_of_its_own() -> Object:
    """Build a pod unlike all others, so that nothing is known and a replica has to be asked."""
    number = next(_numbers)
    return pod(f"p{number}", cpu=f"{number}m")


async def test_a_filter_that_restarts_costs_no_cycle(stack: Stack) -> None:
    await stack.create([node("n1"), node("n2")])
    opened = await stack.metric("moorage_sessions_opened_total", service="filter")
    failed = await stack.metric("moorage_extender_requests_total", verb="filter", result="failed")

    stack.kill("filter")
    answers = [await stack.filter(pod_of_its_own(), ["n1", "n2"]) for _ in range(20)]

    assert all(answer["NodeNames"] == ["n1", "n2"] for answer in answers)
    assert await stack.metric("moorage_sessions_opened_total", service="filter") == opened + 1
    assert failed == await stack.metric(
        "moorage_extender_requests_total", verb="filter", result="failed"
    )


def deadly(**labels: str) -> Object:
    """Build a pod whose plugin ends the process that it runs in, if a label says so."""
    made = pod(f"p{next(_numbers)}", labels=labels, schedulerName="deadly")
    return {**made, "metadata": {**made["metadata"], "namespace": "deadly"}}


async def test_a_pod_that_ends_scorers_costs_no_other_a_call(stack: Stack) -> None:
    async def both_take_part() -> bool:
        return await stack.metric("moorage_replicas_ready", service="scorer") == 2

    await stack.create([node("n1"), node("n2")])
    await stack.until(both_take_part)
    before = len(stack.messages)
    names = ["n1", "n2"]
    innocents = [asyncio.create_task(stack.prioritize(deadly(), names)) for _ in range(10)]
    poison = asyncio.create_task(stack.prioritize(deadly(**{"ends-scorer": "1"}), names))
    innocents += [asyncio.create_task(stack.prioritize(deadly(), names)) for _ in range(10)]
    assert [len(await answer) for answer in innocents] == [2] * 20
    assert await poison == [], "it has no scores without the plugin"
    await stack.until(both_take_part)
    ended = [message for message in stack.messages[before:] if "ended with exit code 3" in message]
    assert len(ended) == 2, stack.messages[before:]


async def test_a_pod_that_ends_a_filter_is_refused_from_the_second_time_on(stack: Stack) -> None:
    await stack.create([node("n1"), node("n2")])
    before = len(stack.messages)
    poison = deadly(**{"ends-filter": "1"})

    async def refused() -> bool:
        # One that ended a second replica is refused once the third has said what it found.
        return PROBLEM in (await stack.filter(poison, ["n1", "n2"]))["Error"]

    for _ in range(2):
        await stack.until(refused)
        assert (await stack.filter(deadly(), ["n1", "n2"]))["NodeNames"] == ["n1", "n2"]
    ended = [message for message in stack.messages[before:] if "was killed by SIGSEGV" in message]
    assert len(ended) == 2, stack.messages[before:]
    decision = await stack.decision(poison["metadata"]["name"], "deadly")
    assert PROBLEM in decision["error"]
    async with stack.session.get(f"{stack.addresses.admin}/readyz") as response:
        named = f"plugin Culprit ran for pod deadly/{poison['metadata']['name']}, 2 times"
        assert named in await response.text()


async def test_a_scorer_that_hangs_costs_a_moment_once(stack: Stack) -> None:
    async def both_take_part() -> bool:
        return await stack.metric("moorage_replicas_ready", service="scorer") == 2

    async def resent() -> float:
        return await stack.metric("moorage_cycles_resent_total", service="scorer", cause="slow")

    await stack.create([node("n1"), node("n2")])
    await stack.until(both_take_part)
    before = await resent()
    stack.kill("scorer-2", signal.SIGSTOP)
    try:
        answers = [await stack.prioritize(pod_of_its_own(), ["n1", "n2"]) for _ in range(6)]
    finally:
        stack.kill("scorer-2", signal.SIGCONT)
    assert [len(answer) for answer in answers] == [2] * 6
    assert await resent() > before

    await stack.until(both_take_part)


async def test_a_binder_that_dies_costs_no_bind(stack: Stack) -> None:
    pods = [pod(f"left-{i}", schedulerName="nobody") for i in range(3)]
    objects = await stack.create([node("n1")], pods)
    await stack.fault(verb="create", resource="pods/binding", delaySeconds=1, times=3)
    binds = [asyncio.create_task(stack.bind(obj, "n1")) for obj in objects]

    async def under_way() -> bool:
        return await stack.metric("moorage_cache_size", type="assumed_pods") == 3

    await stack.until(under_way)
    stack.kill("binder")

    assert await asyncio.gather(*binds) == [""] * 3
    assert set((await stack.places()).values()) == {"n1"}


async def test_a_gateway_that_is_told_to_stop_finishes_its_binds(stack: Stack) -> None:
    obj, *_ = await stack.create([node("n1")], [pod("p", schedulerName="nobody")])
    await stack.fault(verb="create", resource="pods/binding", delaySeconds=1)
    bind = asyncio.create_task(stack.bind(obj, "n1"))

    async def under_way() -> bool:
        return await stack.metric("moorage_cache_size", type="assumed_pods") == 1

    await stack.until(under_way)
    stack.kill("gateway", signal.SIGTERM)

    assert await bind == ""
    assert (await stack.places())["p"] == "n1"

    async def restarted() -> bool:
        return any("gateway ended with exit code 0" in message for message in stack.messages)

    await stack.until(restarted)
    await stack.answers()
