"""The network of a node: a bridge, and a network namespace with an address for each pod.

A namespace lives as long as the process that holds it, and the kernel ends that with the tests.
"""

import asyncio
import ipaddress
import os
import random
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.renderings.node.launch import CLONE_NEWNET, _libc
from tests.scenarios.programs import Program


@dataclass(slots=True, kw_only=True)
class Sandbox:
    """The network of one pod, or of the node itself."""

    address: str
    holder: Program

    @property
    def path(self) -> Path:
        """The namespace."""
        return Path(f"/proc/{self.holder.pid}/ns/net")

    def socket(self, family: int, kind: int, protocol: int) -> socket.socket:
        """Open a socket in the namespace; it stays there."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.path, os.O_RDONLY)
        try:
            assert _libc.setns(there, CLONE_NEWNET) == 0
            return socket.socket(family, kind, protocol)
        finally:
            assert _libc.setns(own, CLONE_NEWNET) == 0
            os.close(there)
            os.close(own)


class Network:
    """10.X.1.0/24 for pods, with a free X, and addresses for Services.

    Attributes:
        services: Their range.
        kubernetes: The address of the API server.
        dns: That of the cluster's names.
    """

    def __init__(self, directory: Path, *, kubeadm: bool = False) -> None:
        """Prepare it; *kubeadm* is whether Services have addresses as with kubeadm's defaults."""
        self._directory = directory
        routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
        free = [number for number in range(112, 250) if f"10.{number}." not in routes]
        self._number = random.choice(free)
        self._bridge = f"moorage-{self._number}"
        self._pods = ipaddress.ip_network(f"10.{self._number}.1.0/24").hosts()
        start = "10.96" if kubeadm else f"10.{self._number}"
        self.services = f"{start}.0.0/{16 if kubeadm else 24}"
        self.kubernetes = f"{start}.0.1"
        self.dns = f"{start}.0.10"

    def start(self) -> None:
        """Make the bridge."""
        ip("link", "add", self._bridge, "type", "bridge")
        ip("address", "add", f"{next(self._pods)}/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")

    def stop(self) -> None:
        """Remove the bridge, and all that is attached to it."""
        with suppress(subprocess.CalledProcessError):
            ip("link", "delete", self._bridge)

    def give(self, address: str) -> None:
        """Have this machine answer for an address of a Service."""
        ip("address", "add", f"{address}/32", "dev", self._bridge)

    async def sandbox(self, name: str) -> Sandbox:
        """Make a network namespace with an address."""
        address = str(next(self._pods))
        holder = Program(
            name=f"{name} (sandbox)",
            command=["/usr/bin/unshare", "--net", "sleep", "infinity"],
            log=self._directory / f"{name}-sandbox.log",
            ready=lambda: asyncio.to_thread(_is_apart, holder),
        )
        await holder.start()
        made = Sandbox(address=address, holder=holder)
        outside = f"mo{self._number}-{address.rpartition('.')[2]}"
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        ip("link", "add", outside, *peer)
        ip("link", "set", outside, "master", self._bridge, "up")
        inside: Callable[..., None] = lambda *words: ip(*words, pid=holder.pid)  # noqa: E731
        inside("address", "add", f"{address}/24", "dev", "eth0")
        inside("link", "set", "lo", "up")
        inside("link", "set", "eth0", "up")
        inside("route", "add", "default", "via", f"10.{self._number}.1.1")
        return made


def ip(*words: str, pid: int | None = None) -> None:
    """Run the command ip, in the network of a process."""
    inside = [] if pid is None else ["nsenter", f"--net=/proc/{pid}/ns/net"]
    subprocess.run([*inside, "ip", *words], capture_output=True, text=True, check=True)


def _is_apart(holder: Program) -> bool:
    with suppress(OSError):
        own = Path("/proc/self/ns/net").readlink()
        return Path(f"/proc/{holder.pid}/ns/net").readlink() != own
    return False
