"""Asks the gateway of `moorage up`: is it ready, and what do its plugins do?"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.screen import Screen

READY_SECONDS = 30.0
"""How long the gateway may take to know the cluster and to reach its services."""

REFUSED_SECONDS = 3.0
"""How long services may refuse the policy, which they are asked to take again and again."""

REFUSAL = " refuses the policy: "

POLL_SECONDS = 0.05

BACKGROUND_SECONDS = 1.0
"""How often to ask for notes; one is shown once two answers have it: services start and go."""

NOTES = {
    "plugins": ("Plugins fail: {}", "Plugins do not fail any more."),
    "scorer": ("Note: {}", "Pods are placed with scores again."),
}
"""What is shown when the gateway begins to have a note of this name, and when it has none again."""


def gateway_at(admin: str) -> AbstractAsyncContextManager[Gateway]:
    """Connect to the admin port at the URL *admin*."""
    return connected(GatewayOptions(admin=admin))


async def wait_until_ready(gateway: Gateway) -> str:
    """Wait until it is ready; return what is not after READY_SECONDS, "" if everything is.

    A plugin that does not start is not waited for so long.
    """

    async def problem() -> str:
        checks = (await _readiness(gateway)).get("checks", ())
        return "; ".join(f"{check['name']}: {check['reason']}" for check in checks)

    return await _wait(problem)


async def wait_for_nodes(gateway: Gateway, count: int) -> str:
    """Wait until it knows *count* nodes: pods that come before them would find no place.

    Returns:
        What is wrong if it does not within READY_SECONDS, else "".
    """

    async def problem() -> str:
        known = (await gateway.get("/replicas"))["counts"]["nodes"]
        return f"the gateway has seen {known} of {count} nodes" if known < count else ""

    return await _wait(problem)


async def replicas(gateway: Gateway) -> frozenset[str]:
    """Return the replicas of filter and scorer that take part; each process has a name."""
    services = (await gateway.get("/replicas"))["services"]
    return frozenset(each["replica"] for service in services for each in service["replicas"])


async def wait_for_others(gateway: Gateway, former: Set[str], revision: str) -> str:
    """Wait until others than the *former* replicas take part, with the policy of *revision*.

    Returns:
        What is wrong if they do not in time, else "".
    """

    async def problem() -> str:
        now = await replicas(gateway)
        if now & former or len(now) < len(former):
            answer = await _readiness(gateway)
            reasons = [each["reason"] for each in answer.get("checks", ())]
            reasons += [n["note"] for n in answer.get("notes", ()) if n["name"] == "scorer"]
            return "; ".join(("its services do not take part again", *reasons))
        if (await gateway.get("/policy"))["revision"] != revision:
            return "the gateway does not take the policy"
        return ""

    return await _wait(problem) or await wait_until_ready(gateway)


async def _wait(problem: Callable[[], Awaitable[str]]) -> str:
    """Wait until there is no problem; return the one that is there after READY_SECONDS."""
    clock = asyncio.get_running_loop().time
    start = clock()
    while True:
        try:
            if not (found := await problem()):
                return ""
        except GatewayError:
            found = "it does not answer"
        if clock() - start > (REFUSED_SECONDS if REFUSAL in found else READY_SECONDS):
            return found.rpartition(REFUSAL)[2]
        await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def background_shown(screen: Screen, gateway: Gateway) -> AsyncIterator[None]:
    """Show when plugins begin to fail beside cycles or scores fail, and when that ends."""
    showing = asyncio.create_task(_show_background(screen, gateway))
    try:
        yield
    finally:
        showing.cancel()


async def _show_background(screen: Screen, gateway: Gateway) -> None:
    before: Set[str] = frozenset()
    shown: set[str] = set()
    while True:
        with suppress(GatewayError):  # of a gateway that ends, others have the news
            notes = (await _readiness(gateway)).get("notes", ())
            now = {each["name"]: each["note"] for each in notes}
            for name, (begins, ends) in NOTES.items():
                if name in now and name in before and name not in shown:
                    shown.add(name)
                    screen.sentence(begins.format(now[name]), style="yellow")
                elif name in shown and name not in now:
                    shown.remove(name)
                    screen.sentence(ends)
            before = now.keys()
        await asyncio.sleep(BACKGROUND_SECONDS)


async def _readiness(gateway: Gateway) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await gateway.get("/readyz", statuses=(200, 503))
    return answer
