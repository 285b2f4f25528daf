"""`moorage up`: every process of Moorage on this machine, with a cluster to schedule on."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from cli.certs.folders import CertificateOptions, keep_certificates
from cli.config.policies import Policy, choose_policy
from cli.shared.failures import clear_failures
from cli.shared.gateway.client import Gateway
from cli.shared.screen import Screen
from cli.up.asked import Schedulers
from cli.up.clients.cluster import connected
from cli.up.clients.gateway import background_shown, gateway_at, wait_until_ready
from cli.up.clients.standin import StandIn
from cli.up.files.directory import run_directory
from cli.up.files.kubeconfig import KubeconfigFile, reserve
from cli.up.following import Following
from cli.up.objects.controlled import expected_pods
from cli.up.objects.workload import Workload, read_workload
from cli.up.placing import Placing
from cli.up.processes import Processes, ProcessFailedError, start_here
from cli.up.processes.scheduling import read_scheduler_config
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from cli.up.reloading.reloader import Reloader, Retry
from cli.up.result import Report, show_addresses
from moorage_host.process.lifecycle import stop_signals
from sandbox.client import ApiError

INTERRUPTED = 130
"""Exit code if a signal came before the result."""

NEWS_SECONDS = 2.0
"""How long the news that a process died may take after its connection broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `moorage up` was asked for; see its --help."""

    nodes: str | None
    pods: str | None
    scorers: int
    config: Path | None
    scheduler_config: Path | None
    plugins: tuple[Path, ...]
    weights: Mapping[Path, int]
    kubeconfig: Path | None
    kubeconfig_out: Path | None
    once: bool
    timeout: float
    rows: int
    extender_port: int
    admin_port: int
    api_port: int
    tls: bool


def up(options: UpOptions) -> int:
    """Run until the result is there, or until a signal; return the exit code.

    Raises:
        ConfigurationError: An input is wrong.
        SystemExit: With 1, after a line on stderr: a process does not start, or an object is
            refused.
    """
    start_here()  # before there are threads, and what is undone in the end
    screen = Screen()
    policy = choose_policy(options.config, options.plugins, options.weights)
    profiles, scale = policy.resolved.profile_names, policy.resolved.score_scale
    given = options.nodes, options.pods, profiles
    workload = Workload() if options.kubeconfig else read_workload(*given)
    with _kubeconfig(options) as kubeconfig, run_directory() as run, clear_failures():
        for note in (*policy.notes, *workload.notes):
            screen.sentence(f"Note: {note}", style="yellow")
        certificates = run.path / "certs" if options.tls else None
        if certificates:
            keep_certificates(certificates, CertificateOptions())
        stack = StackOptions(
            directory=run.path,
            kubeconfig=options.kubeconfig,
            config=run.write("policy.yaml", policy.text) if policy.text else options.config,
            profiles=profiles,
            plugins=options.plugins,
            scorers=options.scorers,
            scheduler=read_scheduler_config(options.scheduler_config, profiles, scale),
            extender_port=options.extender_port,
            admin_port=options.admin_port,
            api_port=options.api_port,
            certificates=certificates,
        )
        work = _Up(screen, stack, options, policy=policy, kubeconfig=kubeconfig)
        code = asyncio.run(work.run(workload))
        run.failed = code not in (0, INTERRUPTED)
    return code


class _Up:
    """One run of `moorage up`."""

    def __init__(
        self,
        screen: Screen,
        stack: StackOptions,
        options: UpOptions,
        *,
        policy: Policy,
        kubeconfig: KubeconfigFile | None,
    ) -> None:
        self._screen = screen
        self._stack = stack
        self._options = options
        self._policy = policy
        self._kubeconfig = kubeconfig
        self._processes = Processes(screen.write)
        self._stop = asyncio.Event()
        self._has_result = asyncio.Event()

    async def run(self, workload: Workload) -> int:
        """Work until the end or a signal, then stop all processes; a second signal kills them."""
        with stop_signals() as self._stop:
            work = asyncio.create_task(self._work(workload))
            stopped = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    return work.result()
                return 0 if self._has_result.is_set() else INTERRUPTED
            finally:
                for task in (work, stopped):
                    task.cancel()
                await asyncio.gather(work, stopped, return_exceptions=True)
                self._screen.write("Stopping ...", style="dim")
                await self._processes.stop()

    async def _work(self, workload: Workload) -> int:
        addresses = await self._start()
        async with (
            self._processes.kept(),
            gateway_at(addresses.admin, self._stack.certificates) as gateway,
            background_shown(self._screen, gateway),
        ):
            if addresses.api:
                await self._define(workload, addresses.api)
            problem = await wait_until_ready(gateway)
            if not addresses.api:
                return await self._serve(addresses, gateway, problem)
            if problem:
                raise ProcessFailedError(problem)
            return await self._schedule(workload, addresses, gateway)

    async def _start(self) -> Addresses:
        """Start the processes; show where they are."""
        with self._screen.status("Starting the processes ..."):
            addresses = await start_stack(self._stack, self._processes)
        show_addresses(self._screen, addresses)
        if self._kubeconfig:
            self._kubeconfig.write(addresses.api, addresses.admin)
        path = self._kubeconfig.path if self._kubeconfig else addresses.kubeconfig
        self._screen.write(f"export KUBECONFIG={shlex.quote(str(path))}")
        self._screen.write(f"Logs: {self._stack.directory}", style="dim")
        if self._stack.certificates:
            self._screen.write(f"Certificates: {self._stack.certificates}", style="dim")
        return addresses

    async def _define(self, workload: Workload, api: str) -> None:
        """Create the definitions: the gateway reads the kinds of all plugins before it is ready."""
        async with connected(api) as cluster:
            await cluster.create(workload.only_definitions(), lambda _: None)
            await cluster.check_serves(self._policy.readers())

    async def _schedule(self, workload: Workload, addresses: Addresses, gateway: Gateway) -> int:
        """Have the workload scheduled on the embedded cluster; return the exit code."""
        schedulers = Schedulers(ours=tuple(self._stack.profiles))
        async with (
            _news_of_deaths(),
            connected(addresses.api) as cluster,
            aiohttp.ClientSession() as session,
        ):
            scheduler = StandIn(session, addresses.scheduler)
            made = expected_pods(workload.controlled)
            following = Following(cluster, (), schedulers, made=made)
            rows, nodes = self._options.rows, len(workload.nodes)
            placing = Placing(
                screen=self._screen,
                cluster=cluster,
                gateway=gateway,
                workload=workload,
                following=following,
                report=Report(self._screen, schedulers, scheduler, gateway, rows=rows, nodes=nodes),
                once=self._options.once,
                timeout=self._options.timeout,
                reloads=bool(self._stack.plugins),
                stop=self._stop,
                has_result=self._has_result,
            )

            async def retry() -> str:
                following.ask_again()
                return _tried(await scheduler.retry())

            async with self._reloading(gateway, retry):
                return await placing.run()

    async def _serve(self, addresses: Addresses, gateway: Gateway, problem: str) -> int:
        """Serve a cluster that is not ours, until cancelled."""
        if problem:
            self._screen.write(f"Not ready: {problem}", style="red")
        self._screen.write(
            f"Point kube-scheduler's extender at urlPrefix {addresses.extender}, "
            "with the entry that `moorage config extender POLICY` prints; Ctrl-C stops."
        )
        self._has_result.set()

        async def retry() -> str:
            return "; kube-scheduler tries pending pods again when the cluster changes"

        async with self._reloading(gateway, retry):
            await asyncio.Event().wait()
        return 0

    @asynccontextmanager
    async def _reloading(self, gateway: Gateway, retry: Retry) -> AsyncIterator[None]:
        """Take changed plugin files into use for as long as the block lasts, unless --once."""
        if self._options.once or not self._stack.plugins:
            yield
            return
        reloader = Reloader(
            self._screen,
            self._stack,
            self._processes,
            gateway,
            config=self._options.config,
            weights=self._options.weights,
            policy=self._policy,
        )
        async with asyncio.TaskGroup() as group:
            reloading = group.create_task(reloader.run(retry))
            yield
            reloading.cancel()


def _tried(pods: int) -> str:
    what = "1 pending pod is" if pods == 1 else f"{pods} pending pods are"
    return f": {what} tried again" if pods else ""


@asynccontextmanager
async def _news_of_deaths() -> AsyncIterator[None]:
    """Give way to the news that a process died if the connection to it breaks.

    Raises:
        ProcessFailedError: In an ExceptionGroup: no such news came.
    """
    try:
        yield
    except* (aiohttp.ClientError, ApiError) as errors:
        await asyncio.sleep(NEWS_SECONDS)
        raise ProcessFailedError(f"the API server broke off: {errors.exceptions[0]}") from errors


@contextmanager
def _kubeconfig(options: UpOptions) -> Iterator[KubeconfigFile | None]:
    """Reserve a path for the kubeconfig of the embedded cluster for as long as the block lasts."""
    file = None if options.kubeconfig else reserve(options.kubeconfig_out)
    try:
        yield file
    finally:
        if file:
            file.remove()
