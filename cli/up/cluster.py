"""Creates the workload on the embedded API server."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cli.shared.manifests import Object
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind, decode_pod
from sandbox.client import Api, ApiError

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

SET_ASIDE = (
    "conditions", "containerStatuses", "initContainerStatuses", "resources", "allocatedResources",
)  # fmt: skip
"""What of a pod's status says what its node has set aside while the pod is resized."""

MAY_EXIST = ("Namespace", "PriorityClass")
"""Kinds that the API server has objects of from its start."""

NOT_FOUND, CONFLICT = 404, 409

Created = Callable[[Object], None]
"""Is called with each object that was created."""


async def create(
    api: Api, *groups: Sequence[Object], created: Created = lambda _: None
) -> list[Object]:
    """Create groups of objects one after the other, those of a group side by side; return all.

    Raises:
        ConfigurationError: In ExceptionGroups: the API server refuses an object; names it and
            the reason.
        ApiError: In ExceptionGroups: the API server is not reached.
    """
    paths: dict[str, dict[str, str]] = {}
    places = asyncio.Semaphore(AT_ONCE)

    async def create_one(obj: Object) -> Object:
        async with places:
            answer = await _create(api, obj, paths)
        created(answer)
        return answer

    tasks: list[asyncio.Task[Object]] = []
    for objects in groups:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(create_one(obj)) for obj in objects]
    return [task.result() for task in tasks]


async def check_serves(api: Api, readers: Iterable[tuple[ObjectKind, str]]) -> None:
    """Check that the API server has all kinds that plugins read.

    Args:
        api: The API server.
        readers: The kinds, each with a plugin that reads it.

    Raises:
        ConfigurationError: It does not have one.
    """
    for kind, plugin in readers:
        try:
            await api.request("GET", f"{kind.path}?limit=1")
        except ApiError as error:
            if error.code == NOT_FOUND and not kind.optional:
                raise ConfigurationError(
                    f"{plugin} reads {kind.plural} of {kind.api_version}, which the embedded "
                    "cluster does not have: put the CustomResourceDefinition that adds them "
                    "into a file for --nodes or --pods"
                ) from error


def _set_aside(pod: Object) -> Object | None:
    """Return what counts of the status of a pod that is resized on its node; None of others."""
    try:
        if decode_pod(msgspec.json.encode(pod)).status.counted is None:
            return None
    except msgspec.DecodeError:  # the API server ignores the status of new pods
        return None
    return {key: pod["status"][key] for key in SET_ASIDE if key in pod["status"]}


async def _create(api: Api, obj: Object, paths: dict[str, dict[str, str]]) -> Object:
    kind, metadata = obj["kind"], obj["metadata"]
    path = (await _path(api, obj, paths)).format(namespace=metadata.get("namespace") or "default")
    try:
        answer = await api.request("POST", path, obj)
        status = obj.get("status")
        if kind == "Pod" and status:
            status = _set_aside(obj)
        elif kind in OWN_STATUS:
            status = None
        if status not in (None, {}, answer.get("status")):
            # Creating ignores the status, which plugins may read.
            path = f"{path}/{answer['metadata']['name']}/status"
            answer = await api.request("PATCH", path, {"status": status}, MERGE_PATCH)
    except ApiError as error:
        if error.code == CONFLICT and kind in MAY_EXIST:
            return obj
        if not error.code:
            raise
        raise ConfigurationError(
            f"the API server refuses {kind} {metadata.get('name')}: {error}"
        ) from error
    return answer


async def _path(api: Api, obj: Object, paths: dict[str, dict[str, str]]) -> str:
    """Return where objects of this kind are created, as discovery has it."""
    version = obj.get("apiVersion") or "v1"
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if version not in paths:
        try:
            rows = (await api.request("GET", root)).get("resources", ())
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            rows = ()
        paths[version] = {
            row["kind"]: f"{root}{NAMESPACED if row['namespaced'] else ''}/{row['name']}"
            for row in rows
            if "/" not in row["name"]
        }
    path = paths[version].get(obj["kind"])
    if path is None:
        kind, name = obj["kind"], obj["metadata"].get("name")
        fix = "put the CustomResourceDefinition that adds it into the file"
        raise ConfigurationError(
            f"{kind} {name}: the API server has no kind {kind} of apiVersion {version}; "
            f"{fix if obj.get('apiVersion') else 'write its apiVersion'}"
        )
    return path
