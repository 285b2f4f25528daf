"""Faults of the API server: of watches, lists, Bindings and the Lease."""

import asyncio
from contextlib import suppress
from typing import Any

import aiohttp

from gateway.leadership.election import EPOCH
from tools.chaos.faults import GATEWAY, Injection
from tools.chaos.stack import Stack

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/moorage-gateway"

BINDINGS_AHEAD = 200
"""Bindings that a fault of the API server can concern in a round."""

LIES_AHEAD = 10_000
"""Requests that a lie can concern; it is forgotten before."""


class ApiServerFaults:
    """Knows each fault by the name of its method."""

    def __init__(self, stack: Stack, session: aiohttp.ClientSession) -> None:
        self._stack = stack
        self._session = session
        self.problems: list[str] = []
        """What went wrong that the audit log does not show, since this was last emptied."""

    async def garbage_lease(self, injection: Injection) -> None:
        """Write nonsense into the Lease: a huge epoch, a foreign holder for ever, or no number."""
        garbage: dict[str, Any] = (
            {"metadata": {"annotations": {EPOCH: "9" * 30}}},
            {"spec": {"holderIdentity": "foreign", "leaseDurationSeconds": 2_000_000_000}},
            {"metadata": {"annotations": {EPOCH: "-1"}}, "spec": {"leaseTransitions": -7}},
        )[int(injection.amount)]
        url = f"{self._stack.plane.url}{LEASE}"
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(url, json=garbage, headers=headers) as answer:
            answer.raise_for_status()

    async def slow_bindings(self, injection: Injection) -> None:
        """Have each Binding take between a fifth and all of an amount of seconds.

        What the binder exchanges with a real API server is late instead.
        """
        if self._stack.plane.name == "real":
            self._stack.links["binder>api"].delay = injection.amount / 8
            return
        for i in range(BINDINGS_AHEAD):
            delay = injection.amount * (0.2 + 0.8 * ((i * 7) % 11) / 10)
            await self._fault(delaySeconds=round(delay, 2))

    async def refuse_bindings(self, injection: Injection) -> None:
        """Answer a share of the next Bindings with failures that may be tried again."""
        await self._clear()
        for i in range(BINDINGS_AHEAD):
            refused = (i * 0.618) % 1 < injection.amount
            effects = (
                {"status": (409, 429, 500, 503)[i % 4], "retryAfterSeconds": 1} if refused else {}
            )
            await self._fault(**effects)

    async def lose_answers(self, injection: Injection) -> None:
        """Carry out a share of the next Bindings without an answer."""
        await self._clear()
        for i in range(BINDINGS_AHEAD):
            lost = (i * 0.618) % 1 < injection.amount
            await self._fault(**({"done": True, "drop": True} if lost else {}))

    async def drop_watches(self, injection: Injection) -> None:
        """Cut all watches."""
        await self._post("watches/drop", {})

    async def expire_watches(self, injection: Injection) -> None:
        """End all watches with 410 and forget the history."""
        await self._post("watches/drop", {"expire": True})

    async def lie(self, injection: Injection) -> None:
        """Have watches and lists lie for a while, or answer 410; a gateway must say what is wrong.

        A true oddity is nothing wrong, nor is silence that is shorter than that of a quiet watch.
        """
        target, truths = injection.target, ("gzip", "split", "twice", "silent", "drip")
        effect = {"status": 410} if target == "410" else {"lie": target, "delaySeconds": 0.1}
        for resource in ("nodes", "pods"):
            for verb in ("watch", "list"):
                fault = {"verb": verb, "resource": resource, "times": LIES_AHEAD, **effect}
                await self._post("faults", fault)
        await self._post("watches/drop", {})
        noticed, end = False, asyncio.get_running_loop().time() + injection.seconds
        while asyncio.get_running_loop().time() < end:
            noticed = noticed or await self._reports_cache()
            await asyncio.sleep(0.05)
        await self._clear()
        if not noticed and target not in truths:
            self.problems.append(f"/readyz did not say what is wrong: {target}")

    async def _reports_cache(self) -> bool:
        """Return whether a gateway that answers says of its cache what is wrong."""
        url = f"{self._stack.admin(GATEWAY)}/readyz"
        with suppress(aiohttp.ClientError):
            async with self._session.get(url, ssl=self._stack.ssl()) as answer:
                found = await answer.json()
                shown = (*found.get("checks", ()), *found.get("notes", ()))
                return any(each["name"] == "cache" for each in shown)
        return False

    async def refuse_watches(self, injection: Injection) -> None:
        """Refuse the next watches and lists in different ways."""
        for status in (403, 500, 429):
            for verb in ("watch", "list"):
                await self._post("faults", {"verb": verb, "resource": "pods", "status": status})
        await self._post("watches/drop", {})

    async def _fault(self, **effects: Any) -> None:
        await self._post("faults", {"verb": "create", "resource": "pods/binding", **effects})

    async def _clear(self) -> None:
        url = f"{self._stack.plane.url}/sandbox/faults"
        async with self._session.delete(url) as answer:
            answer.raise_for_status()

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        url = f"{self._stack.plane.url}/sandbox/{path}"
        async with self._session.post(url, json=body) as answer:
            answer.raise_for_status()
