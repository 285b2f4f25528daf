"""Asks the gateway of `moorage up`: is it ready, and what do its plugins do?"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.metrics import Labels, sample
from cli.shared.gateway.options import GatewayOptions
from cli.shared.screen import Screen
from cli.up.processes import ProcessFailedError

READY_SECONDS = 30.0
"""How long the gateway may take to know the cluster and to reach its services."""

REFUSED_SECONDS = 3.0
"""How long services may refuse the policy, which they are asked to take again and again."""

REFUSAL = " refuses the policy: "

POLL_SECONDS = 0.05

CACHED_NODES = ("moorage_cache_size", frozenset({("type", "nodes")}))

COUNTED = {
    "filter": ("moorage_sessions_opened_total", frozenset({("service", "filter")})),
    "score": ("moorage_sessions_opened_total", frozenset({("service", "scorer")})),
    "policy": ("moorage_policy_reloads_total", frozenset({("outcome", "ok")})),
}
"""How often replicas with plugins of a kind began to take part, and the policy file was taken."""

BACKGROUND_SECONDS = 1.0
"""How often to ask whether background work of plugins fails."""

BACKGROUND = "plugins"
"""The note of `/readyz` about plugins that fail in the background or do not start."""

SHOWN = {
    BACKGROUND: ("Plugins fail", "Plugins do not fail any more."),
    "scorer": ("Scores are lacking", "Pods are placed with scores again."),
}
"""Notes of `/readyz` that are shown when they come, and what is shown when they go."""


@asynccontextmanager
async def gateway_at(admin: str, certificates: Path | None = None) -> AsyncIterator[Gateway]:
    """Connect to the admin port at the URL *admin*; as an operator, if there are certificates."""
    operator = certificates / "operator" if certificates else None
    async with connected(GatewayOptions(admin=admin, tls=operator)) as gateway:
        yield gateway


async def wait_until_ready(gateway: Gateway) -> str:
    """Wait until it is ready; return what is not after READY_SECONDS, "" if everything is.

    A plugin that does not start is not waited for so long.
    """
    clock = asyncio.get_running_loop().time
    start = clock()
    while problem := await _problem(gateway):
        if clock() - start > (REFUSED_SECONDS if REFUSAL in problem else READY_SECONDS):
            return problem.rpartition(REFUSAL)[2]
        await asyncio.sleep(POLL_SECONDS)
    return ""


async def wait_for_nodes(gateway: Gateway, count: int) -> None:
    """Wait until it knows *count* nodes: pods that come before them would find no place.

    Raises:
        ProcessFailedError: It does not within READY_SECONDS.
    """
    try:
        async with asyncio.timeout(READY_SECONDS):
            while (await _numbers(gateway)).get(CACHED_NODES, 0) < count:  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError as error:
        raise ProcessFailedError(f"the gateway has not seen all {count} nodes") from error


async def counts(gateway: Gateway) -> Counter[str]:
    """Return how often what is in COUNTED has happened."""
    numbers = await _numbers(gateway)
    return Counter({name: int(numbers.get(sample, 0)) for name, sample in COUNTED.items()})


async def wait_for_counts(gateway: Gateway, goal: Counter[str]) -> str:
    """Wait until `counts` has reached *goal*, and everything is ready.

    Returns:
        What is not after READY_SECONDS; empty if everything is.
    """
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not await _has_reached(gateway, goal):  # noqa: ASYNC110 - another process
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return await _problem(gateway, notes=True) or "its services do not take part again"
    return ""


async def explained(gateway: Gateway, namespace: str, pod: str) -> Mapping[str, Any]:
    """Return the gateway's explanation of a pod with its attempts; empty if it has none."""
    try:
        answer: Mapping[str, Any] = await gateway.get(
            f"/decisions/{namespace}/{pod}", {"explain": "true"}
        )
    except GatewayError:
        return {}
    return answer


@asynccontextmanager
async def background_shown(screen: Screen, gateway: Gateway) -> AsyncIterator[None]:
    """Show when plugins begin to fail beside cycles, and when that ends."""
    showing = asyncio.create_task(_show_background(screen, gateway))
    try:
        yield
    finally:
        showing.cancel()


async def _show_background(screen: Screen, gateway: Gateway) -> None:
    shown, has_scored = set[str](), False
    while True:
        with suppress(GatewayError):  # of a gateway that ends, others have the news
            notes = dict(_notes(await _readiness(gateway)))
            has_scored = has_scored or "scorer" not in notes
            for name, (begin, end) in SHOWN.items() if has_scored else ():
                if name in notes and name not in shown:
                    screen.sentence(f"{begin}: {notes[name]}", style="yellow")
                    shown.add(name)
                elif name not in notes and name in shown:
                    screen.sentence(end)
                    shown.discard(name)
        await asyncio.sleep(BACKGROUND_SECONDS)


async def _has_reached(gateway: Gateway, goal: Counter[str]) -> bool:
    return await counts(gateway) >= goal and not await _problem(gateway, notes=True)


async def _problem(gateway: Gateway, *, notes: bool = False) -> str:
    try:
        answer = await _readiness(gateway)
    except GatewayError:
        return "it does not answer"
    found = [f"{check['name']}: {check['reason']}" for check in answer.get("checks", ())]
    if notes:
        found += [f"{name}: {note}" for name, note in _notes(answer) if name != BACKGROUND]
    return "; ".join(found)


async def _readiness(gateway: Gateway) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await gateway.get("/readyz", statuses=(200, 503))
    return answer


def _notes(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((each["name"], each["note"]) for each in answer.get("notes", ()))


async def _numbers(gateway: Gateway) -> Mapping[tuple[str, Labels], float]:
    """Return what CACHED_NODES and COUNTED name; nothing of a gateway that does not answer."""
    names = tuple(name for name, _ in (CACHED_NODES, *COUNTED.values()))
    try:
        return sample(await gateway.text("/metrics"), 0, names).values
    except GatewayError:
        return {}
