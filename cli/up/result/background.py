"""Shows when background work of plugins begins to fail, and when that ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.shared.screen import Screen
from cli.up.clients.gateway import Gateway


@asynccontextmanager
async def background_shown(screen: Screen, gateway: Gateway) -> AsyncIterator[None]:
    """Show it for as long as the block lasts."""
    showing = asyncio.create_task(_show(screen, gateway))
    try:
        yield
    finally:
        showing.cancel()


async def _show(screen: Screen, gateway: Gateway) -> None:
    async for problem in gateway.background_changes():
        if problem:
            screen.sentence(f"Background work fails: {problem}", style="yellow")
        else:
            screen.sentence("Background work of plugins does not fail any more.")
