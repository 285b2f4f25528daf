"""Asks the stand-in for kube-scheduler what it decided, and to try pods again."""

from typing import Any

import aiohttp


class StandIn:
    """A client of its admin port."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def decision(self, namespace: str, pod: str) -> dict[str, Any] | None:
        """Return the newest decision about a pod; None if it has none or does not answer."""
        try:
            async with self._session.get(f"{self._url}/decisions/{namespace}/{pod}") as response:
                if response.status != 200:
                    return None
                decision: dict[str, Any] = await response.json()
                return decision
        except aiohttp.ClientError:
            return None

    async def retry(self) -> int:
        """Have it try all pending pods again at once; return how many."""
        try:
            async with self._session.post(f"{self._url}/retry") as response:
                answer: dict[str, int] = await response.json()
                return answer["pods"]
        except aiohttp.ClientError:  # it is being started again, and tries all pods then
            return 0
