"""A real API server with the nodes of the bench, and what the bench does there."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import msgspec

from bench.processes import objects
from bench.processes.load import Pods
from bench.processes.objects import NAMESPACE, Object
from moorage_host.kube import KubeClient, connect
from tools import build
from tools.planes.real import RealPlane

HEARTBEAT_SECONDS = 300.0
"""Between two heartbeats of a node, as kubelet sends them if nothing changes."""

AT_ONCE = 32
"""Objects that are created at the same time."""

TIMEOUT = 300.0
NODES = "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler")

NO_LIMIT = {"qps": 10_000, "burst": 10_000}
"""kube-scheduler's own limit of 50 requests a second would hide everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The pods of a run.

    Attributes:
        prefix: Of their names; no other pod has it.
        profile: Their schedulerName.
        kind: How they differ from each other. Unlike ones are unlike those of other batches too.
        waiting: How many exist before kube-scheduler starts.
        arriving: How many further ones are created in a second while it runs.
    """

    prefix: str
    profile: str
    kind: Pods = "equal"
    waiting: int
    arriving: float = 0

    def build(self, first: int, count: int) -> Iterator[Object]:
        """Build pods from a number on."""
        return (self._pod(number) for number in range(first, first + count))

    def _pod(self, number: int) -> Object:
        pod, name = objects.new_pod(), f"{self.prefix}-{number}"
        metadata, spec = pod["metadata"], pod["spec"]
        del metadata["ownerReferences"]  # an owner that does not exist
        metadata["name"], spec["schedulerName"] = name, self.profile
        if self.kind == "unlike":
            metadata["labels"] |= {"statefulset.kubernetes.io/pod-name": name}
            requests = spec["containers"][0]["resources"]["requests"]
            requests["memory"] = str((256 << 20) - crc32(name.encode()) % 10**6)
            spec["tolerations"].append({"key": f"example.com/{name}", "operator": "Exists"})
        return {**pod, "status": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a run of kube-scheduler."""

    bound: int
    pods_per_second: float


def is_built() -> bool:
    """Whether the programs of the control plane are there."""
    return all(build.is_there(name) for name in PROGRAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """A real control plane; `started` makes one."""

    plane: RealPlane
    client: KubeClient

    @property
    def kubeconfig(self) -> Path:
        """How to reach it with all rights."""
        return self.plane.kubeconfig("admin")

    async def create(self, path: str, created: Iterable[Object]) -> None:
        """Create objects, many at a time."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(body: bytes) -> None:
            async with places:
                answer = await self.client.request("POST", path, body=body, timeout=60)
            answer.check()

        async with asyncio.TaskGroup() as group:
            for obj in created:
                group.create_task(one(msgspec.json.encode(obj)))

    async def delete_pods(self) -> None:
        """Delete all pods."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        body = msgspec.json.encode(options)
        answer = await self.client.request("DELETE", PODS, body=body, timeout=TIMEOUT)
        answer.check()

    async def schedule(self, pods: Batch, config: Object, *, seconds: float) -> Run:
        """Create pods and run a kube-scheduler until as many are bound as waited.

        It ends at the latest *seconds* after the first is bound.
        """
        await self.create(PODS, pods.build(0, pods.waiting))
        async with self._scheduling(pods, config) as times, asyncio.TaskGroup() as group:
            arriving = group.create_task(self._arrive(pods))
            while len(times) < pods.waiting and not _is_over(times, seconds):
                await asyncio.sleep(0.1)
            arriving.cancel()
        if len(times) < 2:
            raise RuntimeError(f"fewer than 2 pods were bound; see {self.plane.directory}")
        return Run(bound=len(times), pods_per_second=(len(times) - 1) / (times[-1] - times[0]))

    @asynccontextmanager
    async def _scheduling(self, pods: Batch, config: Object) -> AsyncIterator[list[float]]:
        """Run a kube-scheduler for the duration of the block; give when each pod was bound."""
        answer = await self.client.request("GET", f"{PODS}?limit=1", timeout=30)
        version = msgspec.json.decode(answer.check().body)["metadata"]["resourceVersion"]
        scheduler = self.plane.scheduler("kube-scheduler", {**config, "clientConnection": NO_LIMIT})
        times: list[float] = []
        async with asyncio.timeout(TIMEOUT), asyncio.TaskGroup() as group:
            noting = group.create_task(self._note_binds(version, pods, times))
            await scheduler.start()
            try:
                yield times
            finally:
                noting.cancel()
                await scheduler.stop()

    async def _arrive(self, pods: Batch) -> None:
        for number in itertools.count(pods.waiting) if pods.arriving else ():
            await self.create(PODS, pods.build(number, 1))
            await asyncio.sleep(1 / pods.arriving)

    @asynccontextmanager
    async def heartbeats(self, nodes: int) -> AsyncIterator[None]:
        """Send the heartbeats of so many nodes for the duration of the block."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._heartbeats(nodes))
            yield
            task.cancel()

    async def _heartbeats(self, nodes: int) -> None:
        for number in itertools.count():
            name = objects.node_name(number * 7919 % nodes)
            conditions = list(objects.conditions(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"))
            answer = await self.client.request(
                "PATCH",
                f"{NODES}/{name}/status",
                body=msgspec.json.encode({"status": {"conditions": conditions}}),
                content_type="application/strategic-merge-patch+json",
                timeout=60,
            )
            answer.check()
            await asyncio.sleep(HEARTBEAT_SECONDS / nodes)

    async def _note_binds(self, version: str, pods: Batch, times: list[float]) -> None:
        bound: set[str] = set()
        while True:  # the API server ends a watch that does not keep up
            query = {"watch": "true", "resourceVersion": version}
            async for line in self.client.stream_lines(PODS, query=query, silence=TIMEOUT):
                pod = msgspec.json.decode(line)["object"]
                name, version = pod["metadata"].get("name", ""), pod["metadata"]["resourceVersion"]
                is_bound = pod.get("spec", {}).get("nodeName")
                if is_bound and name.startswith(f"{pods.prefix}-") and name not in bound:
                    bound.add(name)
                    times.append(time.monotonic())


def _is_over(times: Sequence[float], seconds: float) -> bool:
    return len(times) > 1 and time.monotonic() - times[0] > seconds


@asynccontextmanager
async def started(directory: Path, progress: Callable[[str], None]) -> AsyncIterator[ControlPlane]:
    """Run a real API server for the duration of the block."""
    plane = RealPlane(directory)
    progress("starting etcd and kube-apiserver")
    try:
        await plane.start()
        client = await connect(plane.kubeconfig("admin"))
        try:
            yield ControlPlane(plane=plane, client=client)
        finally:
            await client.close()
    finally:
        await plane.stop()
