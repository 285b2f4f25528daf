"""`moorage up`: every process of Moorage on this machine, with a cluster to schedule on."""

import asyncio
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.config.policies import ChosenPolicy, choose_policy
from cli.shared.failures import clear_failures
from cli.shared.files import reason_of, write_files
from cli.shared.gateway.client import Gateway
from cli.shared.gateway.options import GatewayOptions
from cli.shared.given import GivenPlugin, weights_of
from cli.shared.interrupts import INTERRUPTED
from cli.shared.manifests import Object
from cli.shared.output import echo
from cli.shared.screen import Screen
from cli.up.cluster import check_serves, create
from cli.up.following import Following
from cli.up.kubeconfig import reserved
from cli.up.processes import Processes, ProcessFailedError, start_here
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from cli.up.readiness import background_shown, gateway_at, wait_for_nodes, wait_until_ready
from cli.up.reloading import Retry, reload_changes
from cli.up.result import Report, show_addresses
from cli.up.workload import Workload, read_workload
from moorage.errors import ConfigurationError
from moorage_host.process.lifecycle import stop_signals
from sandbox.client import Api, ApiError

ONCE_SECONDS = 600.0
"""How long --once may take."""

NEWS_SECONDS = 2.0
"""How long the news that a process died may take after its connection broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `moorage up` was asked for; see its --help."""

    nodes: str | None
    pods: str | None
    scorers: int
    filters: int
    config: Path | None
    plugins: tuple[GivenPlugin, ...]
    kubeconfig: Path | None
    kubeconfig_out: Path | None
    capacity: str | None
    once: bool
    extender_port: int
    admin_port: int


def up(options: UpOptions) -> int:
    """Run until the result is there, or until a signal; return the exit code.

    Raises:
        ConfigurationError: An input is wrong.
        SystemExit: With 1, after a line on stderr: a process does not start, an object is refused,
            or scheduling fails.
    """
    start_here()  # before there are threads, and what is undone in the end
    screen = Screen()
    plugins = [each.path for each in options.plugins]
    policy = choose_policy(options.config, plugins, weights_of(options.plugins))
    profiles = policy.resolved.profile_names
    given = options.nodes, options.pods, profiles
    workload = Workload() if options.kubeconfig else read_workload(*given)
    return asyncio.run(_up(screen, options, policy, workload))


async def _up(screen: Screen, options: UpOptions, policy: ChosenPolicy, workload: Workload) -> int:
    """Run with a kubeconfig and a directory; no signal comes before they can be removed."""
    plugins, profiles = [each.path for each in options.plugins], policy.resolved.profile_names
    with stop_signals() as stop, ExitStack() as undone:
        file = (
            None if options.kubeconfig else undone.enter_context(reserved(options.kubeconfig_out))
        )
        directory = undone.enter_context(_run_directory())
        undone.enter_context(clear_failures())
        for note in (*policy.notes, *workload.notes):
            screen.sentence(f"Note: {note}", style="yellow")
        config = options.config
        if policy.text:  # it was made of the plugins
            config = directory / "policy.yaml"
            write_files({config: policy.text})
        stack = StackOptions(
            directory=directory,
            kubeconfig=options.kubeconfig,
            kubeconfig_out=file,
            config=config,
            profiles=profiles,
            plugins=plugins,
            score_scale=policy.resolved.score_scale,
            scorers=options.scorers,
            filters=options.filters,
            extender_port=options.extender_port,
            admin_port=options.admin_port,
        )
        code = await _Up(screen, stack, options, policy, stop).run(workload)
        if code not in (0, INTERRUPTED):
            sys.exit(code)
    return code


@contextmanager
def _run_directory() -> Iterator[Path]:
    """Make the directory of a run, with logs and what the processes read.

    At the end of the block it is removed; after an exception it stays, and is printed.
    """
    try:
        path = Path(tempfile.mkdtemp(prefix="moorage-"))
    except OSError as error:
        raise ConfigurationError(
            f"no folder for logs can be made ({reason_of(error)}): name one with TMPDIR"
        ) from error
    try:
        yield path
    except BaseException:
        echo(f"The logs of this run are in {path}", err=True)
        raise
    shutil.rmtree(path, ignore_errors=True)


class _Up:
    """One run of `moorage up`."""

    def __init__(
        self,
        screen: Screen,
        stack: StackOptions,
        options: UpOptions,
        policy: ChosenPolicy,
        stop: asyncio.Event,
    ) -> None:
        self._screen = screen
        self._stack = stack
        self._options = options
        self._policy = policy
        self._processes = Processes(screen.write)
        self._stop = stop
        self._has_result = asyncio.Event()

    async def run(self, workload: Workload) -> int:
        """Work until the end or a signal, then stop all processes; a second signal kills them."""
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
            gateway_at(addresses.admin) as gateway,
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
        path = self._stack.kubeconfig_out or addresses.kubeconfig
        self._screen.write(f"export KUBECONFIG={shlex.quote(str(path))}")
        self._screen.write(f"Logs: {self._stack.directory}", style="dim")
        return addresses

    async def _define(self, workload: Workload, url: str) -> None:
        """Create the definitions: the gateway reads the kinds of all plugins before it is ready."""
        async with Api(url) as api:
            await create(api, workload.definitions)
            await check_serves(api, self._policy.readers())

    async def _schedule(self, workload: Workload, addresses: Addresses, gateway: Gateway) -> int:
        """Have the workload scheduled on the embedded cluster; return the exit code."""
        async with (
            _news_of_deaths(),
            Api(addresses.api) as api,
            Api(addresses.scheduler) as scheduler,
        ):
            following = Following(api, self._stack.profiles, workload.made_pods)
            report = Report(self._screen, scheduler, gateway)

            async def retry() -> str:
                following.ask_again()
                return await _tried(scheduler)

            async with self._reloading(gateway, retry):
                try:
                    await self._create(workload, api, gateway, following)
                    settled = await self._settled(following)
                except asyncio.CancelledError:
                    if self._stop.is_set():  # what has been decided is worth showing
                        await following.catch_up()
                        self._screen.sentence("Interrupted; this has been decided so far:")
                        await report.result(following)
                    raise
                await report.result(following)
                self._has_result.set()
                if not settled:
                    self._screen.write(f"Not settled within {ONCE_SECONDS:g} s.", style="red")
                if self._options.once:
                    return 0 if settled and not following.failing else 1
                await self._stay(following, report)
                return 0

    async def _create(
        self, workload: Workload, api: Api, gateway: Gateway, following: Following
    ) -> None:
        """Create the objects, the pods once the gateway knows the nodes."""
        with self._screen.progress("Creating objects", workload.size) as progress:
            count = iter(range(1, workload.size + 1))
            await create(api, *workload.before_pods, created=lambda _: progress(next(count)))
            if problem := await wait_for_nodes(gateway, len(workload.nodes)):
                raise ProcessFailedError(problem)

            def created(obj: Object) -> None:
                if obj["kind"] == "Pod":
                    following.expect(obj)
                progress(next(count))

            await create(api, *workload.pods_in_turn, workload.controlled, created=created)

    async def _settled(self, following: Following) -> bool:
        """Wait until all pods have a verdict; return whether they do in time."""
        try:
            async with asyncio.timeout(ONCE_SECONDS if self._options.once else None):
                with self._screen.progress("Scheduling pods", following.expected) as progress:
                    await following.until_settled(progress)
        except TimeoutError:
            return False
        return True

    async def _stay(self, following: Following, report: Report) -> None:
        """Show changes until cancelled, then totals."""
        self._screen.write("The cluster stays up; Ctrl-C stops it.")
        if self._stack.plugins:
            self._screen.sentence("Plugins are loaded again when their files change.")
        try:
            async for pod in following.changes():
                await report.change(pod)
        finally:
            report.totals(following)

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

        options, autoscaler = self._options, self._options.capacity
        async with self._reloading(gateway, retry):
            if autoscaler:
                from cli.capacity.running import run as ask_for_nodes

                at = GatewayOptions(admin=addresses.admin, kubeconfig=options.kubeconfig)
                await ask_for_nodes(at, autoscaler=autoscaler)
            await asyncio.Event().wait()
        return 0

    @asynccontextmanager
    async def _reloading(self, gateway: Gateway, retry: Retry) -> AsyncIterator[None]:
        """Take changed plugin files into use for as long as the block lasts, unless --once."""
        if self._options.once or not self._stack.plugins:
            yield
            return
        work = reload_changes(
            *(self._screen, self._stack, self._processes, gateway, retry),
            config=self._options.config,
            weights=weights_of(self._options.plugins),
            policy=self._policy,
        )
        async with asyncio.TaskGroup() as group:
            reloading = group.create_task(work)
            yield
            reloading.cancel()


async def _tried(scheduler: Api) -> str:
    """Have the stand-in try all pending pods again at once; return how many in words."""
    try:
        pods = (await scheduler.request("POST", "/retry"))["pods"]
    except ApiError:  # it is being started again, and tries all pods then
        return ""
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
    except* ApiError as errors:
        await asyncio.sleep(NEWS_SECONDS)
        raise ProcessFailedError(f"the API server broke off: {errors.exceptions[0]}") from errors
