"""Creates the objects of a run, follows its pods and shows where they go."""

import asyncio
from dataclasses import dataclass

from cli.shared.gateway.client import Gateway
from cli.shared.screen import Screen
from cli.up.clients.cluster import Cluster
from cli.up.clients.gateway import wait_for_nodes
from cli.up.following import Following
from cli.up.objects.manifests import Object
from cli.up.objects.workload import Workload
from cli.up.result import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """The objects of one run of `moorage up`.

    Attributes:
        screen: Shows the progress.
        cluster: Where they are created.
        gateway: Is waited for until it knows the nodes.
        workload: The objects.
        following: What has become of the pods.
        report: Shows that.
        once: Whether to end with the result instead of staying.
        timeout: Seconds that the result may take with *once*.
        reloads: Whether plugins are loaded again when their files change.
        stop: Is set when a signal came.
        has_result: Is set when the result was shown.
    """

    screen: Screen
    cluster: Cluster
    gateway: Gateway
    workload: Workload
    following: Following
    report: Report
    once: bool
    timeout: float
    reloads: bool
    stop: asyncio.Event
    has_result: asyncio.Event

    async def run(self) -> int:
        """Create the objects, show the result; without *once* stay until cancelled.

        Returns:
            The exit code.
        """
        try:
            await self._create()
            settled = await self._settled()
        except asyncio.CancelledError:
            if self.stop.is_set():  # what has been decided is worth showing
                await self.following.catch_up()
                self.screen.sentence("Interrupted; this has been decided so far:")
                await self.report.result(self.following)
            raise
        await self.report.result(self.following)
        self.has_result.set()
        if not settled:
            self.screen.write(f"Not settled within {self.timeout:g} s.", style="red")
        if self.once:
            return 0 if settled and not self.following.failing else 1
        await self._stay()
        return 0

    async def _create(self) -> None:
        with self.screen.progress("Creating objects", self.workload.size) as progress:
            count = iter(range(1, self.workload.size + 1))
            await self.cluster.create(self.workload.without_pods(), lambda _: progress(next(count)))
            await wait_for_nodes(self.gateway, len(self.workload.nodes))

            def created(obj: Object) -> None:
                if obj["kind"] == "Pod":
                    self.following.expect(obj)
                progress(next(count))

            await self.cluster.create(self.workload.only_pods(), created)

    async def _settled(self) -> bool:
        """Wait until all pods have a verdict; return whether they do in time."""
        try:
            async with asyncio.timeout(self.timeout if self.once else None):
                await self.following.catch_up()
                expected, done = self.following.expected, self.following.decided
                with self.screen.progress("Scheduling pods", expected, done) as progress:
                    await self.following.until_settled(progress)
        except TimeoutError:
            return False
        return True

    async def _stay(self) -> None:
        """Show changes until cancelled, then what was deleted, and totals."""
        self.screen.write("The cluster stays up; Ctrl-C stops it.")
        if self.reloads:
            self.screen.sentence("Plugins are loaded again when their files change.")
        try:
            async for pod in self.following.changes():
                await self.report.change(pod)
        finally:
            self.report.show_deleted()
            self.report.totals(self.following)
