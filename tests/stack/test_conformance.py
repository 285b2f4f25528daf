"""The conformance kit finds nothing in Moorage."""

import asyncio

import aiohttp
import pytest

from cli.conformance.kit import Kit
from cli.conformance.requests import PREFIX, RECORDED_NODES, Requests
from moorage_host.policy.document import DEFAULT_SCORE_SCALE
from sandbox.scheduler.config import ExtenderConfig
from tests.stack.stack import Stack
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
async def test_nothing_is_found(stack: Stack, names_only: bool) -> None:
    await stack.create([node(name) for name in RECORDED_NODES])
    config = ExtenderConfig(
        url_prefix=stack.addresses.extender,
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        bind_verb="bind",
        weight=1,
        node_cache_capable=names_only,
    )
    requests = Requests(config=config, scheduler_name="moorage", best_score=DEFAULT_SCORE_SCALE)
    kit = Kit(requests=[requests])
    assert await asyncio.to_thread(kit.run) == 0
    assert {check: list(map(str, findings)) for check, findings in kit.found.items()} == {}
    assert kit.skipped.keys() == {"http-not-managed", "http-idle"}
    assert kit.sent["filter"] > 30
    assert kit.sent["bind"] > 50
    # None of the pods, which there are not, stays in the lists as about to be bound.
    assert await outcomes(stack) <= {"unschedulable", "bind failed"}


async def outcomes(stack: Stack) -> set[str]:
    """Return what became of the newest attempt on each pod that the checks made up."""
    url = f"{stack.addresses.admin}/decisions?limit=1000"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        items = (await answer.json())["items"]
    found = {each["uid"]: each["outcome"] for each in reversed(items) if ours(each["pod"])}
    assert len(found) > 15
    return set(found.values())


def ours(pod: str) -> bool:
    return pod.startswith(PREFIX)
