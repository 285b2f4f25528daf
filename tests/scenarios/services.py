"""Gateway, filter, two scorers and binder as processes, each with its own identity."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import yaml

from cli.up.processes import free_ports
from tests.scenarios.proxy import Proxy
from tools.planes.embedded import ROOT, Object, Plane
from tools.planes.programs import Program, start_all, stop_all
from tools.planes.services import HOST, service

HERE = Path(__file__).parent
SERVICES = ("filter", "scorer-1", "scorer-2", "binder")


class Services:
    """Everything of Moorage.

    Attributes:
        extender: The URL for kube-scheduler.
        admin: The URL of the gateway's admin server.
        admins: Those of all processes.
        targets: Where each gRPC service listens, as host:port.
        proxy: Between the binder and the API server.
        programs: By name.
    """

    def __init__(
        self,
        plane: Plane,
        *,
        through_proxy: bool = True,
        certificates: Path | None = None,
        options: Sequence[str] = (),
        gateway: Sequence[str] = (),
        trees: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """Give all processes further *options*, and the gateway others of its own.

        Args:
            plane: The control plane.
            through_proxy: Whether there is a proxy between the binder and the API server.
            certificates: A folder with one for each identity; without it everything is plain text.
            options: Command-line options of all processes.
            gateway: Further ones of the gateway.
            trees: Other source trees by process or kind of process, such as the last release's.
        """
        self._options = options
        self._trees = trees
        self._gateway_options = gateway
        self._plane = plane
        self._certificates = certificates
        scheme = "https" if certificates else "http"
        self._through_proxy = through_proxy
        self.proxy = Proxy(plane.directory, plane.kubeconfig("binder"))
        ports = free_ports(2 * len(SERVICES) + 2)
        self.targets = {n: f"{HOST}:{port}" for n, port in zip(SERVICES, ports, strict=False)}
        self._admins = dict(zip(SERVICES, ports[len(SERVICES) :], strict=False))
        self.extender = f"{scheme}://{HOST}:{ports[-1]}"
        self._admins["gateway"] = ports[-2]
        self.admins = [f"{scheme}://{HOST}:{each}" for each in self._admins.values()]
        self.admin = f"{scheme}://{HOST}:{ports[-2]}"
        self.programs: dict[str, Program] = {}

    async def start(self, stack: AsyncExitStack) -> None:
        """Start all; they are stopped when *stack* is left."""
        binder = self._plane.kubeconfig("binder")
        if self._through_proxy:
            binder = await self.proxy.start(stack)
        policy = self._plane.directory / "policy.yaml"
        content = _policy(self._plane.directory)
        if self._trees:  # another tree may lack the plugins of other profiles
            content["profiles"] = [
                each for each in content["profiles"] if each["schedulerName"] == "steered"
            ]
        policy.write_text(yaml.safe_dump(content))
        programs = [self._service(name, binder) for name in SERVICES]
        programs.append(self._gateway(policy))
        self.programs = {program.name: program for program in programs}
        stack.push_async_callback(stop_all, programs)
        await start_all(programs)

    def admin_of(self, name: str) -> str:
        """Return the URL of a process's admin server."""
        return f"{self.admin.rpartition(':')[0]}:{self._admins[name]}"

    @asynccontextmanager
    async def binder_without_proxy(self) -> AsyncIterator[None]:
        """Let the binder talk to the API server itself, so that the proxy costs no time."""
        program = self.programs["binder"]
        usual = program.command
        direct = f"--kubeconfig={self._plane.kubeconfig('binder')}"
        await program.stop()
        program.command = [*(part for part in usual if "--kubeconfig=" not in part), direct]
        await program.start()
        try:
            yield
        finally:
            await program.stop()
            program.command = usual
            await program.start()

    def _service(self, name: str, binder: Path) -> Program:
        kind = name.partition("-")[0]
        port = self.targets[name].rpartition(":")[2]
        more = [f"--plugin={HERE / 'plugins'}"]
        more += [f"--kubeconfig={binder}"] if kind == "binder" else []
        return self._program(name, [f"--host={HOST}", f"--port={port}", *more])

    def _gateway(self, policy: Path) -> Program:
        scorers = [f"--scorer={at}" for name, at in self.targets.items() if "scorer" in name]
        options = [
            f"--extender-host={HOST}",
            f"--extender-port={self.extender.rpartition(':')[2]}",
            f"--kubeconfig={self._plane.kubeconfig('gateway')}",
            f"--filter={self.targets['filter']}",
            f"--binder={self.targets['binder']}",
            f"--config={policy}",
            *scorers,
            *self._gateway_options,
        ]
        if self._plane.name == "embedded":  # on the real one the scale scenario measures pods/s
            options.append("--cache-verify-share=1")
        return self._program("gateway", options)

    def _program(self, name: str, options: Sequence[str]) -> Program:
        kind = name.partition("-")[0]
        tree = self._trees.get(name) or self._trees.get(kind)
        return service(
            name,
            [*self._options, *options],
            folder=self._plane.directory,
            admin=self._admins[name],
            tls=self._certificates / kind if self._certificates else None,
            # A service is not ready before a gateway has told it the policy.
            probe="readyz" if name in ("gateway", "binder") else "livez",
            environment={"PYTHONPATH": f"{tree}:{tree / 'sdk'}"} if tree else {},
        )


def profiles() -> list[str]:
    """Return the schedulerNames of all profiles of the scenarios."""
    return [profile["schedulerName"] for profile in _policy(Path())["profiles"]]


def _policy(directory: Path) -> Object:
    """Return the demonstration's policy with the scenarios' own profiles beside its own."""
    policy: Object = yaml.safe_load((ROOT / "deploy" / "demo" / "policy.yaml").read_text())
    own = (HERE / "policy.yaml").read_text().replace("DIRECTORY", str(directory))
    return {**policy, "profiles": policy["profiles"] + yaml.safe_load(own)}
