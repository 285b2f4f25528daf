"""Asks the gateway's admin port: is it ready, and what did it decide?"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from cli.up.processes import ProcessFailedError
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.contexts import client_context

READY_SECONDS = 30.0
"""How long the gateway may take to know the cluster and to reach its services."""

REFUSED_SECONDS = 3.0
"""How long services may refuse the policy, which they are asked to take again and again."""

REFUSAL = " refuses the policy: "

POLL_SECONDS = 0.05

CACHED_NODES = 'moorage_cache_size{type="nodes"}'

COUNTED = {
    "filter": 'moorage_sessions_opened_total{service="filter"}',
    "score": 'moorage_sessions_opened_total{service="scorer"}',
    "policy": 'moorage_policy_reloads_total{outcome="ok"}',
}
"""How often replicas with plugins of a kind began to take part, and the policy file was taken."""

SAMPLE = re.compile(r"^(\S+) (\S+)$", re.MULTILINE)
"""A number in Prometheus' text format, with its name and labels."""


BACKGROUND_SECONDS = 1.0
"""How often to ask whether background work of plugins fails."""

BACKGROUND = "plugins"
"""The note of `/readyz` about the background work of plugins."""


class Gateway:
    """A client of the admin port."""

    def __init__(self, session: aiohttp.ClientSession, admin: str) -> None:
        self._session = session
        self._admin = admin

    async def wait_until_ready(self) -> str:
        """Wait until it is ready; return what is not after READY_SECONDS, "" if everything is.

        A plugin that does not start is not waited for so long.
        """
        clock = asyncio.get_running_loop().time
        start = clock()
        while problem := await self._problem():
            if clock() - start > (REFUSED_SECONDS if REFUSAL in problem else READY_SECONDS):
                return problem.rpartition(REFUSAL)[2]
            await asyncio.sleep(POLL_SECONDS)
        return ""

    async def wait_for_nodes(self, count: int) -> None:
        """Wait until it knows *count* nodes: pods that come before them would find no place.

        Raises:
            ProcessFailedError: It does not within READY_SECONDS.
        """
        try:
            async with asyncio.timeout(READY_SECONDS):
                while (await self._numbers()).get(CACHED_NODES, 0) < count:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise ProcessFailedError(f"the gateway has not seen all {count} nodes") from error

    async def counts(self) -> Counter[str]:
        """Return how often what is in COUNTED has happened."""
        numbers = await self._numbers()
        return Counter({name: int(numbers.get(sample, 0)) for name, sample in COUNTED.items()})

    async def wait_for_counts(self, goal: Counter[str]) -> str:
        """Wait until `counts` has reached *goal*, and everything is ready.

        Returns:
            What is not after READY_SECONDS; empty if everything is.
        """
        try:
            async with asyncio.timeout(READY_SECONDS):
                while not await self._has_reached(goal):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return await self._problem(notes=True) or "its services do not take part again"
        return ""

    async def decision(self, namespace: str, pod: str) -> dict[str, Any] | None:
        """Return the newest attempt on a pod, None if it has none or does not answer."""
        try:
            async with self._session.get(f"{self._admin}/decisions/{namespace}/{pod}") as response:
                if response.status != 200:
                    return None
                attempts: list[dict[str, Any]] = (await response.json())["attempts"]
                # An attempt that has only begun, or was a preemption, has no verdicts.
                return next((each for each in attempts if "filter" in each), attempts[0])
        except aiohttp.ClientError:
            return None

    async def background_changes(self) -> AsyncIterator[str]:
        """Yield what fails in the background of plugins when that begins, and "" when it ends."""
        former = ""
        while True:
            with suppress(aiohttp.ClientError):  # of a gateway that ends, others have the news
                async with self._session.get(f"{self._admin}/readyz") as response:
                    problem = dict(_notes(await response.json())).get(BACKGROUND, "")
                if bool(problem) != bool(former):
                    yield problem
                former = problem
            await asyncio.sleep(BACKGROUND_SECONDS)

    async def _has_reached(self, goal: Counter[str]) -> bool:
        return await self.counts() >= goal and not await self._problem(notes=True)

    async def _problem(self, *, notes: bool = False) -> str:
        try:
            async with self._session.get(f"{self._admin}/readyz") as response:
                answer = await response.json()
        except aiohttp.ClientError:
            return "it does not answer"
        found = [f"{check['name']}: {check['reason']}" for check in answer.get("checks", ())]
        if notes:
            found += [f"{name}: {note}" for name, note in _notes(answer) if name != BACKGROUND]
        return "; ".join(found)

    async def _numbers(self) -> Mapping[str, float]:
        try:
            async with self._session.get(f"{self._admin}/metrics") as response:
                text = await response.text()
        except aiohttp.ClientError:
            return {}
        return {name: float(value) for name, value in SAMPLE.findall(text)}


def _notes(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((each["name"], each["note"]) for each in answer.get("notes", ()))


@asynccontextmanager
async def gateway_at(admin: str, certificates: Path | None = None) -> AsyncIterator[Gateway]:
    """Connect to the admin port at the URL *admin*; as an operator, if there are certificates."""
    operator = certificates and client_context(read_certificate(certificates / "operator"))
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=operator or True)
    ) as session:
        yield Gateway(session, admin)
