"""Finds replicas by name: every address that a target's host has is a replica of its own."""

import asyncio
import socket
from collections.abc import Sequence

from moorage_host.process.admin import address


class Resolver:
    """Looks targets up; one that cannot be looked up keeps the addresses that it had.

    Attributes:
        problem: What could not be looked up the last time; empty if nothing.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        """Look for *targets*, "host:port"."""
        self.problem = ""
        self._addresses: dict[str, set[str]] = {target: set() for target in targets}

    async def addresses(self) -> set[str]:
        """Return the addresses of all targets, "host:port"."""
        self.problem = ""
        for target in self._addresses:
            try:
                self._addresses[target] = await _resolve(target)
            except OSError as error:
                self.problem = f"cannot resolve {target}: {error.strerror}"
        return set().union(*self._addresses.values())


async def _resolve(target: str) -> set[str]:
    host, _, port = target.removeprefix("dns:///").rpartition(":")
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return {address(str(entry[4][0]), int(entry[4][1])) for entry in found}
