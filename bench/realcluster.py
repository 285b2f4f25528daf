"""A real API server with the nodes of the bench, and what the bench does there."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import msgspec

from bench import clusters
from bench.clusters import NAMESPACE, Object
from bench.load import Pods
from moorage_host.kube import KubeClient, connect
from tests.e2e.plane.real import RealPlane

AT_ONCE = 32
PATIENCE = 300.0
NODES = "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

NO_LIMIT = {"qps": 10_000, "burst": 10_000}
"""kube-scheduler's own limit of 50 requests a second would hide everything else."""


class _Metadata(msgspec.Struct):
    name: str = ""
    uid: str = ""
    version: str = msgspec.field(default="", name="resourceVersion")


class _Spec(msgspec.Struct):
    node: str = msgspec.field(default="", name="nodeName")


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Change(msgspec.Struct):
    object: _Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCluster:
    """A real control plane; `started` makes one."""

    plane: RealPlane
    client: KubeClient

    @property
    def kubeconfig(self) -> Path:
        """How to reach it with all rights."""
        return self.plane.kubeconfig("admin")

    async def create_nodes(self, count: int) -> None:
        """Create the nodes of the bench."""
        await self._create(NODES, clusters.nodes(count))

    async def create_pods(
        self, prefix: str, count: int, profile: str, kind: Pods = "equal"
    ) -> dict[str, str]:
        """Create pods that wait; return their UIDs by name."""
        bodies = await self._create(PODS, waiting_pods(prefix, count, profile, kind))
        made = [msgspec.json.decode(body, type=_Pod).metadata for body in bodies]
        return {one.name: one.uid for one in made}

    async def delete_pods(self) -> None:
        """Delete all pods."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        body = msgspec.json.encode(options)
        answer = await self.client.request("DELETE", PODS, body=body, timeout=PATIENCE)
        answer.check()

    async def pods_per_second(self, pods: Sequence[str], config: Object, seconds: float) -> float:
        """Run a kube-scheduler; return how many pods it binds in a second.

        It ends when all are bound, or *seconds* after the first.
        """
        version = await self._version()
        times: list[float] = []
        scheduler = self.plane.scheduler("kube-scheduler", {**config, "clientConnection": NO_LIMIT})
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            watching = group.create_task(self._note_binds(version, set(pods), times))
            await scheduler.start()
            try:
                while len(times) < len(pods) and not _over(times, seconds):
                    await asyncio.sleep(0.1)
            finally:
                watching.cancel()
                await scheduler.stop()
        return (len(times) - 1) / (times[-1] - times[0])

    async def _note_binds(self, version: str, left: set[str], times: list[float]) -> None:
        while left:  # the API server ends a watch that does not keep up
            query = {"watch": "true", "resourceVersion": version}
            async for line in self.client.stream_lines(PODS, query=query, silence=PATIENCE):
                pod = msgspec.json.decode(line, type=_Change).object
                version = pod.metadata.version
                if pod.spec.node and pod.metadata.name in left:
                    left.discard(pod.metadata.name)
                    times.append(time.monotonic())
                if not left:
                    return

    async def _version(self) -> str:
        answer = await self.client.request("GET", f"{PODS}?limit=1", timeout=30)
        version: str = msgspec.json.decode(answer.check().body)["metadata"]["resourceVersion"]
        return version

    async def _create(self, path: str, objects: Iterable[Object]) -> list[bytes]:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(body: bytes) -> bytes:
            async with places:
                answer = await self.client.request("POST", path, body=body, timeout=60)
            return answer.check().body

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(msgspec.json.encode(obj))) for obj in objects]
        return [task.result() for task in tasks]


def waiting_pods(prefix: str, count: int, profile: str, kind: Pods) -> Iterator[Object]:
    """Build pods that wait. Unlike ones are unlike those of other prefixes too."""
    for number in range(count):
        pod, name = clusters.new_pod(), f"{prefix}-{number}"
        metadata, spec = pod["metadata"], pod["spec"]
        del metadata["ownerReferences"]  # an owner that does not exist
        metadata["name"], spec["schedulerName"] = name, profile
        if kind != "equal":
            metadata["labels"] |= {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(number)}
        if kind == "unlike":
            requests = spec["containers"][0]["resources"]["requests"]
            requests["memory"] = str((256 << 20) - crc32(name.encode()) % 10**6)
            spec["tolerations"].append({"key": f"example.com/{name}", "operator": "Exists"})
        yield {**pod, "status": {}}


def _over(times: Sequence[float], seconds: float) -> bool:
    return len(times) > 1 and time.monotonic() - times[0] > seconds


@asynccontextmanager
async def started(directory: Path, say: Callable[[str], None]) -> AsyncIterator[RealCluster]:
    """Run a real API server for the duration of the block."""
    plane = RealPlane(directory)
    say("starting etcd and kube-apiserver")
    try:
        await plane.start()
        client = await connect(plane.kubeconfig("admin"))
        try:
            yield RealCluster(plane=plane, client=client)
        finally:
            await client.close()
    finally:
        await plane.stop()
