"""Moorage's processes beside any API server: what everything starts that is not `moorage up`.

Scenarios, doctor's installation, monitoring and the campaign differ in how many there are of each,
and in what lies between two of them: a proxy by `kubeconfig`, links by `reach`.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Self

from cli.up.processes import free_ports
from tools.planes.embedded import answers
from tools.planes.programs import Program, running

HOST = "127.0.0.1"
SERVICES = ("filter", "scorer-1", "scorer-2", "binder")


class Moorage:
    """Gateways, filters, scorers and binders, each with the identity of its kind.

    A process is called by its kind, as in "gateway", or by a kind and a number.

    Attributes:
        ports: Where each serves gRPC, or the extender, by name.
        extender: The URL for kube-scheduler; the first gateway's.
        admin: The URL of that gateway's admin server.
        programs: By name; none before they are started.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Callable[[str], Path],
        *,
        services: Sequence[str] = SERVICES,
        gateways: Sequence[str] = ("gateway",),
        certificates: Path | None = None,
        options: Mapping[str, Sequence[str]] = MappingProxyType({}),
        reach: Callable[[str, str], int] | None = None,
        environment: Callable[[str], Mapping[str, str]] = lambda _: MappingProxyType({}),
        awaited: Sequence[str] = ("gateway", "binder"),
    ) -> None:
        """Choose the ports; nothing is started.

        Args:
            folder: Where logs go, and the gateway's policy is: policy.yaml.
            kubeconfig: Returns how a process of this name reaches the API server.
            services: The names of all but gateways.
            gateways: Theirs.
            certificates: A folder with one for each identity; without it everything is plain text.
            options: Further command-line options by kind of process, "" for all.
            reach: Returns the port at which a gateway reaches a service; its own by default.
            environment: Returns variables of a process, which is not forked if it has any.
            awaited: The kinds that have not started before they are ready. A service is not ready
                before a gateway has told it the policy.
        """
        self.folder = folder
        self.services, self.gateways = services, gateways
        self._kubeconfig, self._environment = kubeconfig, environment
        self._certificates, self._options, self._awaited = certificates, options, awaited
        self._reach = reach
        names = (*services, *gateways)
        ports = free_ports(2 * len(names))
        self.ports = dict(zip(names, ports, strict=False))
        self._admins = dict(zip(names, ports[len(names) :], strict=False))
        self.scheme = "https" if certificates else "http"
        self.extender = f"{self.scheme}://{HOST}:{self.ports[gateways[0]]}"
        self.admin = self.admin_of(gateways[0])
        self.programs: dict[str, Program] = {}

    def admin_of(self, name: str) -> str:
        """Return the URL of a process's admin server."""
        return f"{self.scheme}://{HOST}:{self._admins[name]}"

    def target(self, name: str) -> str:
        """Return where a process serves gRPC, as host:port."""
        return f"{HOST}:{self.ports[name]}"

    @asynccontextmanager
    async def started(self) -> AsyncIterator[Self]:
        """Start all at once; stop all in the end, also those that were started again."""
        self.programs = {name: self.program(name) for name in self.ports}
        async with running(*self.programs.values()):
            yield self

    def program(self, name: str) -> Program:
        """Return one of them, not started."""
        kind = name.partition("-")[0]
        port, admin = self.ports[name], self._admins[name]
        options = [
            *(f"--admin-host={HOST}", f"--admin-port={admin}", "--log-format=text"),
            *("--shutdown-delay=0s", "--shutdown-grace=2s"),
        ]
        if self._certificates:
            options.append(f"--tls={self._certificates / kind}")
        if kind in ("gateway", "binder"):
            options.append(f"--kubeconfig={self._kubeconfig(name)}")
        if kind == "gateway":
            options += [f"--extender-host={HOST}", f"--extender-port={port}"]
            options.append(f"--config={self.folder / 'policy.yaml'}")
            for each in self.services:
                if each.startswith("binder-"):
                    continue  # it is reached where the first one is
                at = self._reach(name, each) if self._reach else self.ports[each]
                options.append(f"--{each.partition('-')[0]}={HOST}:{at}")
        else:
            options += [f"--host={HOST}", f"--port={port}"]
        probe = "readyz" if kind in self._awaited else "livez"
        return Program(
            name=name,
            module="gateway" if kind == "gateway" else f"services.{kind}",
            command=[*options, *self._options.get("", ()), *self._options.get(kind, ())],
            environment=dict(self._environment(name)),
            log=self.folder / f"{name}.log",
            ready=lambda: answers(f"{self.admin_of(name)}/{probe}", ssl=False),
        )
