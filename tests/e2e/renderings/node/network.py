"""The network of a node: a bridge, and a network namespace with an address for each pod.

All of it is in namespaces of its own, so that nothing of this machine is in its way. Each lives as
long as the process that holds it, and the kernel ends that with the tests.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.renderings.node.launch import CLONE_NEWNET, _libc
from tools.planes.programs import START_SECONDS, Program

SERVICES = "10.96.0.0/16"
"""The addresses of Services: the beginning of kubeadm's default."""

KUBERNETES, DNS = "10.96.0.1", "10.96.0.10"
PODS = "10.244.1"
BRIDGE = "cni0"
CLOSED_PORT = 1

Opens = Callable[[Any], socket.socket]
"""Opens a socket for what getaddrinfo() returned."""


@dataclass(slots=True, kw_only=True)
class Sandbox:
    """The network of one pod, or of the node itself."""

    address: str
    holder: Program

    @property
    def path(self) -> Path:
        """The namespace."""
        return Path(f"/proc/{self.holder.pid}/ns/net")

    def open(self, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """Open a socket in the namespace, where it stays."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.path, os.O_RDONLY)
        try:
            assert _libc.setns(there, CLONE_NEWNET) == 0
            made = socket.socket(socket.AF_INET, kind)
        finally:
            assert _libc.setns(own, CLONE_NEWNET) == 0
            os.close(there)
            os.close(own)
        made.setblocking(False)
        return made

    def opens(self, _: object) -> socket.socket:
        """Open a socket for aiohttp."""
        return self.open()


class Network:
    """One node's network.

    Attributes:
        node: That of the node itself.
    """

    node: Sandbox

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0

    async def start(self) -> None:
        """Make the node's namespace and the bridge."""
        self.node = Sandbox(address=f"{PODS}.1", holder=await self._hold("node"))
        ip(self.node, "link", "set", "lo", "up")
        ip(self.node, "link", "add", BRIDGE, "type", "bridge")
        ip(self.node, "address", "add", f"{self.node.address}/24", "dev", BRIDGE)
        ip(self.node, "link", "set", BRIDGE, "up")

    async def stop(self) -> None:
        """Remove everything."""
        await self.node.holder.kill()

    def give(self, address: str) -> None:
        """Have the node answer for an address of a Service."""
        ip(self.node, "address", "add", f"{address}/32", "dev", BRIDGE)

    async def sandbox(self, name: str) -> Sandbox:
        """Make a network namespace with an address."""
        self._made += 1
        outside, address = f"veth{self._made}", f"{PODS}.{self._made + 1}"
        holder = await self._hold(name)
        made = Sandbox(address=address, holder=holder)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        ip(self.node, "link", "add", outside, *peer)
        ip(self.node, "link", "set", outside, "master", BRIDGE, "up")
        ip(made, "address", "add", f"{made.address}/24", "dev", "eth0")
        ip(made, "link", "set", "lo", "up")
        ip(made, "link", "set", "eth0", "up")
        ip(made, "route", "add", "default", "via", self.node.address)
        await self._reached_from(made)
        return made

    async def _reached_from(self, sandbox: Sandbox) -> None:
        """Wait until the bridge forwards: a process that starts earlier may end for lack of it."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(START_SECONDS):
            while True:
                with sandbox.open() as probe, suppress(OSError):
                    with suppress(ConnectionRefusedError):  # nothing listens there
                        await loop.sock_connect(probe, (self.node.address, CLOSED_PORT))
                    return
                await asyncio.sleep(0.05)

    async def _hold(self, name: str) -> Program:
        holder = Program(
            name=f"{name} (sandbox)",
            command=["/usr/bin/unshare", "--net", "sleep", "infinity"],
            log=self._directory / f"{name}-sandbox.log",
            ready=lambda: asyncio.to_thread(_is_apart, holder),
        )
        await holder.start()
        return holder


def ip(sandbox: Sandbox, *words: str) -> None:
    """Run the command ip in a namespace."""
    command = ["nsenter", f"--net={sandbox.path}", "ip", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command}: {run.stderr} (it needs root and iproute2)"


def _is_apart(holder: Program) -> bool:
    with suppress(OSError):
        own = Path("/proc/self/ns/net").readlink()
        return Path(f"/proc/{holder.pid}/ns/net").readlink() != own
    return False
