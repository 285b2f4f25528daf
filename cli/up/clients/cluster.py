"""Talks to the embedded API server: creates the workload and follows its pods."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from cli.up.objects.manifests import Object
from cli.up.objects.workload import Workload
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind
from sandbox.client import SYNCED, Api

AT_ONCE = 16
"""Objects that are created side by side."""

PODS = "/api/v1/pods"

NAMESPACED = "/namespaces/{namespace}"

MERGE_PATCH = "application/merge-patch+json"

OWN_STATUS = (
    "Pod", "Node", "Namespace", "CustomResourceDefinition", "Deployment", "ReplicaSet",
    "StatefulSet", "DaemonSet", "Job",
)  # fmt: skip
"""Kinds whose status the embedded cluster writes."""

MAY_EXIST = ("Namespace", "PriorityClass")
"""Kinds that the API server has objects of from its start."""


class Cluster:
    """A client of the embedded API server."""

    def __init__(self, session: aiohttp.ClientSession, client: Api) -> None:
        self._session = session
        self._client = client
        self._api = client.url
        self._served: dict[str, dict[str, str]] = {}

    async def create(self, workload: Workload, created: Callable[[Object], None]) -> list[Object]:
        """Create everything; call *created* with each object; return the pods as created.

        Raises:
            ConfigurationError: In ExceptionGroups: the API server refuses an object; names it and
                the reason.
        """
        before = (
            workload.namespaces,
            workload.definitions,
            workload.priority_classes,
            workload.further,
            workload.nodes,
        )
        for objects in before:
            await self._create_all(objects, created)
        pods = await self._create_all(workload.pods, created)
        await self._create_all(workload.controlled, created)
        return pods

    async def check_serves(self, readers: Iterable[tuple[ObjectKind, str]]) -> None:
        """Check that it has all kinds that plugins read.

        Args:
            readers: The kinds, each with a plugin that reads it.

        Raises:
            ConfigurationError: It does not have one.
        """
        for kind, plugin in readers:
            url = f"{self._api}{kind.path}"
            async with self._session.get(url, params={"limit": "1"}) as response:
                if response.status == 404 and not kind.optional:
                    raise ConfigurationError(
                        f"{plugin} reads {kind.plural} of {kind.api_version}, which the embedded "
                        "cluster does not have: put the CustomResourceDefinition that adds them "
                        "into a file for --nodes or --pods"
                    )

    async def pods(self) -> list[Object]:
        """Return all pods.

        Raises:
            ApiError: The API server is not reached, or refuses.
        """
        pods, _ = await self._client.list(PODS)
        return pods

    async def failed_attempts(self) -> list[Object]:
        """Return the events of attempts to schedule a pod that came to nothing.

        Raises:
            ApiError: The API server is not reached, or refuses.
        """
        path = "/api/v1/events?fieldSelector=reason=FailedScheduling"
        events, _ = await self._client.list(path)
        return events

    async def follow(self) -> AsyncIterator[tuple[str, Object]]:
        """Yield all pods as ADDED, then what happens to them, for ever, also after a cut."""
        async for kind, pod in self._client.follow(PODS):
            if kind != SYNCED:
                yield kind, pod

    async def _get(self, path: str) -> Any:
        async with self._session.get(self._api + path) as response:
            return await response.json()

    async def _create_all(
        self, objects: Sequence[Object], created: Callable[[Object], None]
    ) -> list[Object]:
        places = asyncio.Semaphore(AT_ONCE)

        async def create(obj: Object) -> Object:
            async with places:
                answer = await self._create(obj)
            created(answer)
            return answer

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(create(obj)) for obj in objects]
        return [task.result() for task in tasks]

    async def _create(self, obj: Object) -> Object:
        kind, metadata = obj["kind"], obj["metadata"]
        path = (await self._path(obj)).format(namespace=metadata.get("namespace") or "default")
        code, answer = await self._send("POST", path, obj, "application/json")
        if code == 409 and kind in MAY_EXIST:
            return obj
        if code < 400 and obj.get("status") and kind not in OWN_STATUS:
            # Creating ignores the status, which plugins may read.
            status, path = {"status": obj["status"]}, f"{path}/{answer['metadata']['name']}/status"
            if answer.get("status") != obj["status"]:
                code, answer = await self._send("PATCH", path, status, MERGE_PATCH)
        if code >= 400:
            raise ConfigurationError(
                f"the API server refuses {kind} {metadata.get('name')}: {answer.get('message')}"
            )
        return answer

    async def _send(self, method: str, path: str, body: Object, form: str) -> tuple[int, Object]:
        # YAML has values that the standard library's JSON does not know, such as dates.
        data, headers = msgspec.json.encode(body), {"Content-Type": form}
        url = self._api + path
        async with self._session.request(method, url, data=data, headers=headers) as response:
            return response.status, await response.json()

    async def _path(self, obj: Object) -> str:
        """Return where objects of this kind are created, as discovery has it."""
        version = obj.get("apiVersion") or "v1"
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._served:
            rows = (await self._get(root)).get("resources", ())
            self._served[version] = {
                row["kind"]: f"{root}{NAMESPACED if row['namespaced'] else ''}/{row['name']}"
                for row in rows
                if "/" not in row["name"]
            }
        path = self._served[version].get(obj["kind"])
        if path is None:
            kind, name = obj["kind"], obj["metadata"].get("name")
            fix = "put the CustomResourceDefinition that adds it into the file"
            raise ConfigurationError(
                f"{kind} {name}: the API server has no kind {kind} of apiVersion {version}; "
                f"{fix if obj.get('apiVersion') else 'write its apiVersion'}"
            )
        return path


@asynccontextmanager
async def connected(api: str) -> AsyncIterator[Cluster]:
    """Connect to the API server at *api*."""
    connector = aiohttp.TCPConnector(limit=2 * AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Cluster(session, Api(api, session))
