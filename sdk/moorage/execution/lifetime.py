"""Starts and stops plugins, with what they do in the background."""

import asyncio
from typing import Final

from moorage.execution.enabled import EnabledPlugin

START_SECONDS: Final = 10.0
"""How long `start` of a plugin may take; cycles wait for it."""

STOP_SECONDS: Final = 5.0
"""How long `stop` of a plugin, and the end of its background work, may take."""


async def start_plugin(enabled: EnabledPlugin) -> None:
    """Start a plugin; what its `start` raises goes through, and nothing of it runs any more then.

    Raises:
        TimeoutError: `start` took too long.
    """
    enabled.plugin.begin_background_by(enabled.background.begin)
    try:
        async with asyncio.timeout(START_SECONDS):
            await enabled.plugin.start()
    except BaseException:
        await _end_background(enabled)
        raise


async def stop_plugin(enabled: EnabledPlugin) -> None:
    """End the background work of a plugin, then stop it; what its `stop` raises goes through.

    Raises:
        TimeoutError: `stop` took too long.
    """
    await _end_background(enabled)
    async with asyncio.timeout(STOP_SECONDS):
        await enabled.plugin.stop()


async def _end_background(enabled: EnabledPlugin) -> None:
    enabled.plugin.begin_background_by(None)
    await enabled.background.end(STOP_SECONDS)
