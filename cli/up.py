"""`moorage up`: every process of Moorage on this machine, with a cluster to schedule on."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from cli.cluster import Cluster, PodState, connected
from cli.processes import Processes
from cli.reasons import why
from cli.stack import (
    Addresses,
    StackOptions,
    start_api_server,
    start_scheduler,
    start_services,
)
from cli.workload import Object, Workload
from moorage.rpc.process import stop_signals

SHOWN_PODS = 50
"""Rows of the result table; larger workloads are summed up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `moorage up` was asked for, beside the stack.

    Attributes:
        once: End with the result instead of staying.
        timeout: Seconds that the workload may take with `once`.
    """

    once: bool
    timeout: float


class Up:
    """One run of `moorage up`."""

    def __init__(self, console: Console, stack: StackOptions, options: UpOptions) -> None:
        self._console = console
        self._stack = stack
        self._options = options
        self._pods: dict[str, PodState] = {}

    async def run(self, workload: Workload) -> int:
        """Start everything, schedule *workload*, show it; return the exit code.

        Raises:
            ConfigurationError: A process does not start, or an object is refused.
        """
        with stop_signals() as stop:
            processes = Processes(self._console.print)
            work = asyncio.create_task(self._work(workload, processes))
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
                return work.result() if work.done() else 0
            finally:
                for task in (work, stopped):
                    task.cancel()
                await asyncio.gather(work, stopped, return_exceptions=True)
                self._console.print("Stopping ...", style="dim")
                await processes.stop()

    async def _work(self, workload: Workload, processes: Processes) -> int:
        with self._console.status("Starting the processes ..."):
            api = await self._start_api(processes)
            addresses = await start_services(self._stack, processes, api)
            if api:
                await start_scheduler(self._stack, processes, addresses)
        self._show_addresses(addresses)
        async with processes.kept():
            if not api:
                self._console.print(
                    f"Point kube-scheduler's extender at {addresses.extender}. Ctrl-C stops."
                )
                await asyncio.Event().wait()
            for note in workload.notes:
                self._console.print(f"Note: {note}", style="yellow")
            async with connected(addresses.api) as cluster:
                return await self._schedule(cluster, workload, addresses)

    async def _start_api(self, processes: Processes) -> str:
        return "" if self._stack.kubeconfig else await start_api_server(self._stack, processes)

    async def _schedule(self, cluster: Cluster, workload: Workload, addresses: Addresses) -> int:
        await self._create(cluster, workload)
        settled = True
        try:
            limit = self._options.timeout if self._options.once else None
            async with asyncio.timeout(limit):
                await self._follow(cluster)
        except TimeoutError:
            settled = False
        await self._show_result(addresses)
        if not settled:
            self._console.print(f"Not settled within {self._options.timeout:g} s.", style="red")
        if self._options.once:
            return 0 if settled else 1
        self._console.print("The cluster stays up; Ctrl-C stops it.")
        await self._tell(cluster, addresses)
        return 0

    async def _create(self, cluster: Cluster, workload: Workload) -> None:
        everything = (
            *workload.namespaces,
            *workload.priority_classes,
            *workload.nodes,
            *workload.pods,
        )
        with self._progress() as progress:
            bar = progress.add_task("Creating objects", total=len(everything))
            created = await cluster.create(workload, lambda: progress.advance(bar))
        unbound = [pod for pod in created if not pod["spec"].get("nodeName")]
        self._pods = {pod["metadata"]["uid"]: PodState.of(pod) for pod in unbound}

    async def _follow(self, cluster: Cluster) -> None:
        """Follow the pods until each is bound or found to suit no node."""
        pods, version = await cluster.pods()
        with self._progress() as progress:
            bar = progress.add_task("Scheduling pods", total=len(self._pods))
            for pod in pods:
                self._note(pod)
            self._advance(progress, bar)
            if self._settled():
                return
            async for _, pod in cluster.watch(version):
                self._note(pod)
                self._advance(progress, bar)
                if self._settled():
                    return

    async def _tell(self, cluster: Cluster, addresses: Addresses) -> None:
        """Say of each pod that comes later where it went and why, for as long as we are up."""
        _, version = await cluster.pods()
        async with aiohttp.ClientSession() as session:
            async for kind, pod in cluster.watch(version):
                uid, state = pod["metadata"]["uid"], PodState.of(pod)
                if kind == "DELETED":
                    self._pods.pop(uid, None)
                elif state != self._pods.get(uid) and state.decided:
                    self._pods[uid] = state
                    reason = await why(session, addresses.admin, state)
                    where = state.node or "pending"
                    self._console.print(f"{state.namespace}/{state.name} -> {where}: {reason}")

    def _note(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._pods:
            self._pods[uid] = PodState.of(pod)

    def _advance(self, progress: Progress, bar: TaskID) -> None:
        progress.update(bar, completed=sum(pod.decided for pod in self._pods.values()))

    def _settled(self) -> bool:
        return all(pod.decided for pod in self._pods.values())

    def _progress(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        return Progress(*columns, console=self._console)

    def _show_addresses(self, addresses: Addresses) -> None:
        table = Table("process", "address", "for", title="Moorage is up", title_justify="left")
        table.add_row("gateway", addresses.extender, "kube-scheduler's extender urlPrefix")
        table.add_row("", addresses.admin, "/readyz /metrics /decisions/NAMESPACE/POD")
        for name, place in addresses.services.items():
            table.add_row(name, place, f"grpcurl -plaintext {place} list")
        if addresses.api:
            table.add_row("API server", addresses.api, "kubectl, with the kubeconfig below")
        self._console.print(table)
        self._console.print(f"export KUBECONFIG={addresses.kubeconfig}", soft_wrap=True)
        self._console.print(f"Logs: {self._stack.directory}", style="dim", soft_wrap=True)

    async def _show_result(self, addresses: Addresses) -> None:
        states = sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name))
        bound = sum(bool(pod.node) for pod in states)
        table = Table("pod", "node", "why")
        async with aiohttp.ClientSession() as session:
            for pod in states[:SHOWN_PODS]:
                reason = await why(session, addresses.admin, pod)
                node = pod.node or "[red]pending[/red]"
                table.add_row(f"{pod.namespace}/{pod.name}", node, reason)
        if states:
            self._console.print(table)
        if len(states) > SHOWN_PODS:
            self._console.print(f"... and {len(states) - SHOWN_PODS} more pods")
        self._console.print(f"{bound} of {len(states)} pods bound, {len(states) - bound} pending")


@contextlib.contextmanager
def run_directory() -> Iterator[Path]:
    """Give a directory for logs and the kubeconfig; it stays if the block fails."""
    directory = Path(tempfile.mkdtemp(prefix="moorage-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
