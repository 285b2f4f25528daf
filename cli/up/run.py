"""`moorage up`: every process of Moorage on this machine, with a cluster to schedule on."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import click

from cli.config.policies import choose_policy
from cli.failures import clear_failures
from cli.screen import Screen
from cli.up.asked import Schedulers
from cli.up.cluster import Cluster, connected
from cli.up.controlled import expected_pods
from cli.up.following import Following
from cli.up.gateway import Gateway, gateway_at
from cli.up.manifests import Object
from cli.up.processes import Processes, ProcessFailedError
from cli.up.report import show_addresses, show_change, show_result
from cli.up.stack import Addresses, StackOptions, start_stack
from cli.up.standin import StandIn
from cli.up.workload import Workload, read_workload
from moorage_host.process.lifecycle import stop_signals

INTERRUPTED = 130
"""Exit code of `--once` if a signal came before the result."""

NEWS_SECONDS = 2.0
"""How long the news that a process died may take after its connection broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `moorage up` was asked for; see its --help."""

    nodes: str | None
    pods: str | None
    scorers: int
    config: Path | None
    plugins: tuple[Path, ...]
    weights: Mapping[Path, int]
    kubeconfig: Path | None
    once: bool
    timeout: float
    extender_port: int
    admin_port: int
    api_port: int


def up(options: UpOptions) -> int:
    """Run until the result is there, or until a signal; return the exit code.

    Raises:
        ConfigurationError: An input is wrong.
        SystemExit: With 1, after a line on stderr: a process does not start, or an object is
            refused.
    """
    screen = Screen()
    policy = choose_policy(options.config, options.plugins, options.weights)
    profiles = policy.resolved.profile_names
    workload = Workload()
    if not options.kubeconfig:
        workload = read_workload(options.nodes, options.pods, profiles)
    for note in (*policy.notes, *workload.notes):
        screen.write(f"Note: {note}", style="yellow")
    with _run_directory() as run, clear_failures():
        stack = StackOptions(
            directory=run.path,
            kubeconfig=options.kubeconfig,
            config=run.write("policy.yaml", policy.text) if policy.text else options.config,
            profiles=profiles,
            plugins=options.plugins,
            scorers=options.scorers,
            extender_port=options.extender_port,
            admin_port=options.admin_port,
            api_port=options.api_port,
        )
        code = asyncio.run(_Up(screen, stack, options).run(workload))
        run.failed = code not in (0, INTERRUPTED)
    return code


class _Up:
    """One run of `moorage up`."""

    def __init__(self, screen: Screen, stack: StackOptions, options: UpOptions) -> None:
        self._screen = screen
        self._stack = stack
        self._options = options
        self._processes = Processes(screen.write)

    async def run(self, workload: Workload) -> int:
        """Work until the end or a signal, then stop all processes; a second signal kills them."""
        with stop_signals() as stop:
            work = asyncio.create_task(self._work(workload))
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    return work.result()
                return INTERRUPTED if self._options.once else 0
            finally:
                for task in (work, stopped):
                    task.cancel()
                await asyncio.gather(work, stopped, return_exceptions=True)
                self._screen.write("Stopping ...", style="dim")
                await self._processes.stop()

    async def _work(self, workload: Workload) -> int:
        with self._screen.status("Starting the processes ..."):
            addresses = await start_stack(self._stack, self._processes)
        show_addresses(self._screen, addresses)
        self._screen.write(f"Logs: {self._stack.directory}", style="dim")
        async with self._processes.kept(), gateway_at(addresses.admin) as gateway:
            problem = await gateway.wait_until_ready()
            if not addresses.api:
                return await self._serve(addresses, problem)
            if problem:
                raise ProcessFailedError(f"the gateway is not ready: {problem}")
            async with (
                _news_of_deaths(),
                connected(addresses.api) as cluster,
                aiohttp.ClientSession() as session,
            ):
                scheduler = StandIn(session, addresses.scheduler)
                return await self._schedule(cluster, scheduler, gateway, workload)

    async def _serve(self, addresses: Addresses, problem: str) -> int:
        """Serve a cluster that is not ours, until cancelled."""
        if problem:
            self._screen.write(f"Not ready: {problem}", style="red")
        self._screen.write(
            f"Point kube-scheduler's extender at urlPrefix {addresses.extender}, "
            "with the entry that `moorage config extender POLICY` prints; Ctrl-C stops."
        )
        await asyncio.Event().wait()
        return 0

    async def _schedule(
        self, cluster: Cluster, scheduler: StandIn, gateway: Gateway, workload: Workload
    ) -> int:
        schedulers = Schedulers(ours=tuple(self._stack.profiles))
        created = await self._create(cluster, gateway, workload)
        made = expected_pods(workload.controlled)
        following = Following(cluster, created, schedulers, made)
        limit = self._options.timeout if self._options.once else None
        settled = True
        try:
            async with asyncio.timeout(limit):
                with self._screen.progress("Scheduling pods", following.expected) as progress:
                    await following.until_settled(progress)
        except TimeoutError:
            settled = False
        await show_result(self._screen, following, schedulers, scheduler, gateway)
        if not settled:
            self._screen.write(f"Not settled within {limit:g} s.", style="red")
        if self._options.once:
            return 0 if settled and not following.failing else 1
        self._screen.write("The cluster stays up; Ctrl-C stops it.")
        async for pod in following.changes():
            await show_change(self._screen, pod, schedulers, scheduler, gateway)
        return 0

    async def _create(self, cluster: Cluster, gateway: Gateway, workload: Workload) -> list[Object]:
        with self._screen.progress("Creating objects", workload.size) as progress:
            count = iter(range(1, workload.size + 1))
            await cluster.create(workload.without_pods(), lambda: progress(next(count)))
            await gateway.wait_for_nodes(len(workload.nodes))
            return await cluster.create(workload.only_pods(), lambda: progress(next(count)))


@asynccontextmanager
async def _news_of_deaths() -> AsyncIterator[None]:
    """Give way to the news that a process died if the connection to it breaks.

    Raises:
        ProcessFailedError: In an ExceptionGroup: no such news came.
    """
    try:
        yield
    except* aiohttp.ClientError as errors:
        await asyncio.sleep(NEWS_SECONDS)
        raise ProcessFailedError(f"the API server broke off: {errors.exceptions[0]}") from errors


@dataclass(slots=True, kw_only=True)
class _Run:
    """The directory of a run; it stays if the run failed."""

    path: Path
    failed: bool = True

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.write_text(text)
        return file


@contextmanager
def _run_directory() -> Iterator[_Run]:
    run = _Run(path=Path(tempfile.mkdtemp(prefix="moorage-")))
    try:
        yield run
    finally:
        if run.failed:
            click.echo(f"The logs of this run are in {run.path}", err=True)
        else:
            shutil.rmtree(run.path, ignore_errors=True)
