"""gRPC works in forked processes under load, and they end as started ones do."""

import signal

import pytest

from tests.stack.stack import Stack, pod
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS = 300


async def test_they_bind_hundreds_of_pods_without_an_error_and_end_in_order(stack: Stack) -> None:
    async def errors() -> float:
        failed = [
            await stack.metric("moorage_extender_requests_total", verb=verb, result="failed")
            for verb in ("filter", "prioritize", "bind")
        ]
        return sum(failed)

    async def said() -> bool:
        return len(stack.messages) >= before + 2

    failed, before = await errors(), len(stack.messages)
    nodes = [node(f"n{i}") for i in range(30)]
    pods = [pod(f"p{i}", cpu=f"{10 + i}m") for i in range(PODS)]
    await stack.create(nodes, pods)
    places = await stack.all_bound(PODS)
    assert set(places.values()) <= {each["metadata"]["name"] for each in nodes}
    assert await errors() == failed

    for name in ("gateway", "binder"):
        stack.kill(name, signal.SIGTERM)
    await stack.until(said)
    assert {each.partition(":")[0] for each in stack.messages[before:]} == {
        "gateway ended with exit code 0",
        "binder ended with exit code 0",
    }
    await stack.answers()
    await stack.create(pods=[pod("last")])
    await stack.all_bound(PODS + 1)
