"""Talks to the embedded API server: creates the workload and follows its pods."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from cli.workload import Object, Workload
from moorage.errors import ConfigurationError

AT_ONCE = 16
"""Objects that are created side by side."""

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """How far a pod is.

    Attributes:
        node: Where it is bound; empty if it is not.
        problem: What kube-scheduler says of it; empty if it says nothing.
        decided: It is bound, or no node suits it.
    """

    namespace: str
    name: str
    node: str = ""
    problem: str = ""
    decided: bool = False

    @classmethod
    def of(cls, pod: Object) -> "PodState":
        """Read it off the pod."""
        node = pod["spec"].get("nodeName", "")
        conditions = (pod.get("status") or {}).get("conditions") or ()
        scheduled: Object = next((c for c in conditions if c.get("type") == "PodScheduled"), {})
        return cls(
            namespace=pod["metadata"]["namespace"],
            name=pod["metadata"]["name"],
            node=node,
            problem="" if node else scheduled.get("message", ""),
            decided=bool(node) or scheduled.get("reason") == "Unschedulable",
        )


class Cluster:
    """A client of the embedded API server and of the gateway's admin port."""

    def __init__(self, session: aiohttp.ClientSession, api: str) -> None:
        self._session = session
        self._api = api

    async def create(self, workload: Workload, progress: Callable[[], None]) -> list[Object]:
        """Create everything; call *progress* after each object; return the pods as created.

        Raises:
            ConfigurationError: The API server refuses an object; names it and the reason.
        """
        for objects in (workload.namespaces, workload.priority_classes, workload.nodes):
            await self._create_all(objects, progress)
        return await self._create_all(workload.pods, progress)

    async def pods(self) -> tuple[list[Object], str]:
        """Return all pods, and the version to watch from."""
        async with self._session.get(f"{self._api}/api/v1/pods") as response:
            page = await response.json()
        return page["items"], page["metadata"]["resourceVersion"]

    async def watch(self, version: str) -> AsyncIterator[tuple[str, Object]]:
        """Yield what happens to pods: the kind of event and the pod."""
        query = {"watch": "true", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(
            f"{self._api}/api/v1/pods", params=query, timeout=timeout
        ) as response:
            async for line in response.content:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    yield event["type"], event["object"]

    async def _create_all(
        self, objects: Sequence[Object], progress: Callable[[], None]
    ) -> list[Object]:
        places = asyncio.Semaphore(AT_ONCE)

        async def create(obj: Object) -> Object:
            async with places:
                created = await self._create(obj)
            progress()
            return created

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(create(obj)) for obj in objects]
        return [task.result() for task in tasks]

    async def _create(self, obj: Object) -> Object:
        kind, metadata = obj["kind"], obj["metadata"]
        path = PATHS[kind].format(namespace=metadata.get("namespace", "default"))
        async with self._session.post(self._api + path, json=obj) as response:
            answer: dict[str, Any] = await response.json()
        if response.status >= 400:
            raise ConfigurationError(
                f"cannot create {kind} {metadata.get('name')}: {answer.get('message')}"
            )
        return answer


@asynccontextmanager
async def connected(api: str) -> AsyncIterator[Cluster]:
    """Connect to the API server at *api*."""
    connector = aiohttp.TCPConnector(limit=2 * AT_ONCE)
    # A node with its images is a long line.
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 22) as session:
        yield Cluster(session, api)
