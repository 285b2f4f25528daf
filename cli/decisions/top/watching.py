"""Reads a gateway again and again, and shows each interval."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from cli.decisions.top.view import View, draw, view
from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.metrics import Change, Sample, sample
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form, is_for_programs, write
from moorage_host.kube import KubeError

NEWEST = 5
"""Pods that are shown."""

LOOKED_AT = 50
"""Decisions among which they are looked for: a pod may have many."""


async def watch(options: GatewayOptions, *, once: bool, output: Form, interval: float) -> None:
    """Show intervals until cancelled, or one.

    Raises:
        GatewayError: The gateway cannot be asked at first; later that is shown.
    """
    console = Console(markup=False, emoji=False, highlight=False)
    is_data = is_for_programs(output)
    with ExitStack() as stack:
        show = _shows(console, stack, live=console.is_terminal and not once and not is_data)
        async with aclosing(_views(options, interval)) as views:
            async for found, problem in views:
                if not is_data:
                    show(_drawn(found, problem, wide=output == "wide"))
                elif found is not None and not problem:
                    write(found, output, one_of_many=True)
                if once:
                    return


def _drawn(found: View | None, problem: str, *, wide: bool) -> RenderableType:
    parts: list[RenderableType] = [Text(problem, style="bold red")] if problem else []
    return Group(*parts, *([draw(found, wide=wide)] if found else ()))


def _shows(console: Console, stack: ExitStack, *, live: bool) -> Callable[[RenderableType], None]:
    if not live:
        return console.print
    screen = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
    return lambda content: screen.update(content, refresh=True)


async def _views(
    options: GatewayOptions, interval: float
) -> AsyncGenerator[tuple[View | None, str]]:
    """Yield the newest view after each interval, and what is wrong since; connect again then."""
    last: View | None = None
    while True:
        try:
            async with connected(options) as gateway:
                before = await _read(gateway)
                while True:
                    await asyncio.sleep(interval)
                    after = await _read(gateway)
                    last = await _view(gateway, Change(before, after))
                    yield last, ""
                    before = after
        except (GatewayError, KubeError) as error:
            if last is None:
                raise
            yield last, str(error)
            await asyncio.sleep(interval)


async def _read(gateway: Gateway) -> Sample:
    text = await gateway.text("/metrics")
    try:
        found = sample(text, time.monotonic())
    except ValueError as error:
        raise GatewayError(f"{gateway.place}/metrics has no metrics: {error}") from error
    if not found.values:
        raise GatewayError(f"{gateway.place}/metrics has no metrics of Moorage")
    return found


async def _view(gateway: Gateway, change: Change) -> View:
    replicas, decisions = await asyncio.gather(_optional(gateway, "/replicas"), newest(gateway))
    return view(change, gateway.place, replicas, decisions)


async def newest(gateway: Gateway) -> Sequence[Any]:
    """Return the newest decision about each of the pods that were decided on last."""
    found = await _optional(gateway, "/decisions", limit=str(LOOKED_AT))
    pods: dict[tuple[str, str], Any] = {}
    for each in found["items"] if found else ():
        pods.setdefault((each["namespace"], each["pod"]), each)
    return list(pods.values())[:NEWEST]


async def _optional(gateway: Gateway, path: str, **query: str) -> Any | None:
    """Return an answer; None if it may not be read."""
    try:
        return await gateway.get(path, query)
    except GatewayError as error:
        if error.status in (403, 404):
            return None
        raise
