"""Asks the gateway's admin port: is it ready, and what did it decide?"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from cli.up.processes import ProcessFailedError

READY_SECONDS = 30.0
"""How long the gateway may take to know the cluster and to reach its services."""

POLL_SECONDS = 0.05

CACHED_NODES = re.compile(r'^moorage_cache_size{type="nodes"} (\S+)$', re.MULTILINE)


class Gateway:
    """A client of the admin port."""

    def __init__(self, session: aiohttp.ClientSession, admin: str) -> None:
        self._session = session
        self._admin = admin

    async def wait_until_ready(self) -> str:
        """Wait until it is ready; return what is not after READY_SECONDS, "" if everything is."""
        problem = "it does not answer"
        try:
            async with asyncio.timeout(READY_SECONDS):
                while problem := await self._problem():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return problem
        return ""

    async def wait_for_nodes(self, count: int) -> None:
        """Wait until it knows *count* nodes: pods that come before them would find no place.

        Raises:
            ProcessFailedError: It does not within READY_SECONDS.
        """
        try:
            async with asyncio.timeout(READY_SECONDS):
                while await self._cached_nodes() < count:  # noqa: ASYNC110 - another process's
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise ProcessFailedError(f"the gateway has not seen all {count} nodes") from error

    async def decision(self, namespace: str, pod: str) -> dict[str, Any] | None:
        """Return the newest attempt on a pod, None if it has none or does not answer."""
        try:
            async with self._session.get(f"{self._admin}/decisions/{namespace}/{pod}") as response:
                if response.status != 200:
                    return None
                newest: dict[str, Any] = (await response.json())["attempts"][0]
                return newest
        except aiohttp.ClientError:
            return None

    async def _problem(self) -> str:
        try:
            async with self._session.get(f"{self._admin}/readyz") as response:
                checks = (await response.json()).get("checks", ())
        except aiohttp.ClientError:
            return "it does not answer"
        return "; ".join(f"{check['name']}: {check['reason']}" for check in checks)

    async def _cached_nodes(self) -> float:
        try:
            async with self._session.get(f"{self._admin}/metrics") as response:
                found = CACHED_NODES.search(await response.text())
        except aiohttp.ClientError:
            return 0
        return float(found[1]) if found else 0


@asynccontextmanager
async def gateway_at(admin: str) -> AsyncIterator[Gateway]:
    """Connect to the admin port at the URL *admin*."""
    async with aiohttp.ClientSession() as session:
        yield Gateway(session, admin)
