"""Reads the objects of the cluster by GET, or says why one could not be read."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from cli.shared.gateway.pods import Object
from moorage.errors import MoorageError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError

T = TypeVar("T")

SECONDS = 10.0
"""How long the API server may take for an answer."""

MOST = 500
"""Objects that are read of each kind; waiting pods and Events may be more."""

AT_ONCE = 8
"""Objects that are read at the same time, one by one."""

NOT_FOUND = 404

CORE, APPS = "/api/v1", "/apis/apps/v1"

SYSTEM = "kube-system"

PATHS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "pods": (f"{CORE}/namespaces/NAMESPACE/pods", {}),
    "pods of kube-system": (f"{CORE}/namespaces/{SYSTEM}/pods", {}),
    "services": (f"{CORE}/namespaces/NAMESPACE/services", {}),
    "configmaps": (f"{CORE}/namespaces/NAMESPACE/configmaps", {}),
    "deployments": (f"{APPS}/namespaces/NAMESPACE/deployments", {}),
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases", {}),
    "waiting pods": (
        f"{CORE}/pods",
        {"fieldSelector": "spec.nodeName=,status.phase=Pending"},
    ),
    "events": (f"{CORE}/events", {"fieldSelector": "reason=FailedScheduling"}),
}
"""What is read, by the name that checks use; NAMESPACE is that of the gateway."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Stands for what could not be read.

    Attributes:
        reason: Why, as a part of a sentence.
        is_absent: Whether it could be read that there is no such object.
    """

    reason: str
    is_absent: bool = False


class NotReadError(MoorageError):
    """A check needs what could not be read; the runner reports it as not checked."""


def known(value: T | Missing) -> T:
    """Return what was read.

    Raises:
        NotReadError: It could not be read.
    """
    if isinstance(value, Missing):
        raise NotReadError(value.reason)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """What the API server is.

    Attributes:
        version: Its version, such as "v1.36.1".
        skew: Its clock minus the clock of this machine, in seconds, to the second.
    """

    version: str
    skew: float


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects, by the names in `PATHS`."""

    lists: Mapping[str, Sequence[Object] | Missing]

    def of(self, name: str) -> Sequence[Object]:
        """Return the objects of a kind.

        Raises:
            NotReadError: They could not be read.
        """
        return known(self.lists[name])

    def read(self, name: str) -> Sequence[Object]:
        """Return the objects of a kind, none if they could not be read."""
        found = self.lists[name]
        return () if isinstance(found, Missing) else found

    def named(self, kind: str, name: str) -> Object | None:
        """Return an object by its name, None if there is none.

        Raises:
            NotReadError: The kind could not be read.
        """
        return next((each for each in self.of(kind) if each["metadata"]["name"] == name), None)


def no_objects(reason: str) -> Objects:
    """Return what is known without a cluster: nothing."""
    return Objects(dict.fromkeys(PATHS, Missing(reason)))


async def read_objects(client: KubeClient, namespace: str) -> Objects:
    """Read everything in `PATHS`; what may not be read is missing, with the reason."""

    async def one(path: str, query: Mapping[str, str]) -> Sequence[Object] | Missing:
        limited = {**query, "limit": str(MOST)}
        answer = await get(client, path.replace("NAMESPACE", namespace), **limited)
        return answer if isinstance(answer, Missing) else answer.get("items") or []

    found = await asyncio.gather(*(one(*each) for each in PATHS.values()))
    return Objects(dict(zip(PATHS, found, strict=True)))


async def get(client: KubeClient, path: str, **query: str) -> dict[str, Any] | Missing:
    """Return an object or a list, or why it could not be read."""
    try:
        answer = await client.request("GET", path, query=query, timeout=SECONDS)
        content: dict[str, Any] = msgspec.json.decode(answer.check().body)
    except (KubeError, TimeoutError, msgspec.DecodeError) as error:
        message = error.message if isinstance(error, KubeStatusError) else ""
        is_absent = isinstance(error, KubeStatusError) and error.status == NOT_FOUND
        reason = f"GET {path}: {message or error or 'no answer in time'}"
        return Missing(reason, is_absent=is_absent)
    return content


async def read_api_server(client: KubeClient) -> ApiServer | Missing:
    """Read the version and the clock of the API server.

    Raises:
        KubeError: It cannot be reached, or refuses to answer.
        TimeoutError: It does not answer.
    """
    before = time.time()
    answer = (await client.request("GET", "/version", timeout=SECONDS)).check()
    middle = (before + time.time()) / 2
    try:
        version = str(msgspec.json.decode(answer.body)["gitVersion"])
        # The header has no fractions: in the mean it is half a second behind.
        date = parsedate_to_datetime(answer.headers["Date"]).timestamp() + 0.5
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        return Missing(f"GET /version: {error}")
    return ApiServer(version=version, skew=date - middle)
