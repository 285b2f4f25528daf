"""Reads the objects of the cluster by GET, or says why one could not be read."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from cli.shared.gateway.pods import Object
from moorage.errors import MoorageError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError, KubeUnreachableError

T = TypeVar("T")

SECONDS = 10.0
"""How long the API server may take for an answer."""

MOST = 500
"""Objects that are read of each kind; Events may be more."""

AT_ONCE = 8
"""Objects that are read at the same time, one by one."""

CORE, APPS = "/api/v1", "/apis/apps/v1"

SYSTEM = "kube-system"

PATHS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "pods": (f"{CORE}/namespaces/NAMESPACE/pods", {}),
    "pods of kube-system": (f"{CORE}/namespaces/{SYSTEM}/pods", {}),
    "services": (f"{CORE}/namespaces/NAMESPACE/services", {}),
    "configmaps": (f"{CORE}/namespaces/NAMESPACE/configmaps", {}),
    "deployments": (f"{APPS}/namespaces/NAMESPACE/deployments", {}),
    "events": (f"{CORE}/events", {"fieldSelector": "reason=FailedScheduling"}),
}
"""What is read, by the name that checks use; NAMESPACE is that of the gateway."""


class NotReadError(MoorageError):
    """Stands for what could not be read: the reason, as a part of a sentence."""


def known(value: T | NotReadError) -> T:
    """Return what was read; raise why it was not, for the runner to report as not checked."""
    if isinstance(value, NotReadError):
        raise value
    return value


@dataclass(frozen=True, slots=True)
class ReadObjects:
    """The objects, by the names in `PATHS`."""

    lists: Mapping[str, Sequence[Object] | NotReadError]

    def of(self, name: str) -> Sequence[Object]:
        """Return the objects of a kind.

        Raises:
            NotReadError: They could not be read.
        """
        return known(self.lists[name])

    def read(self, name: str) -> Sequence[Object]:
        """Return the objects of a kind, none if they could not be read."""
        found = self.lists[name]
        return () if isinstance(found, NotReadError) else found

    def named(self, kind: str, name: str) -> Object | None:
        """Return an object by its name, None if there is none.

        Raises:
            NotReadError: The kind could not be read.
        """
        return next((each for each in self.of(kind) if each["metadata"]["name"] == name), None)


async def read_objects(client: KubeClient, namespace: str) -> ReadObjects:
    """Read everything in `PATHS`; what may not be read is missing, with the reason."""

    async def one(path: str, query: Mapping[str, str]) -> Sequence[Object] | NotReadError:
        limited = {**query, "limit": str(MOST)}
        answer = await get(client, path.replace("NAMESPACE", namespace), **limited)
        return answer if isinstance(answer, NotReadError) else answer.get("items") or []

    found = await asyncio.gather(*(one(*each) for each in PATHS.values()))
    return ReadObjects(dict(zip(PATHS, found, strict=True)))


async def get(client: KubeClient, path: str, **query: str) -> dict[str, Any] | NotReadError:
    """Return an object or a list, or why it could not be read."""
    try:
        answer = await client.request("GET", path, query=query, timeout=SECONDS)
        content: dict[str, Any] = msgspec.json.decode(answer.check().body)
    except (KubeError, TimeoutError, msgspec.DecodeError) as error:
        message = error.message if isinstance(error, KubeStatusError) else ""
        return NotReadError(f"GET {path}: {message or error or 'no answer in time'}")
    return content


async def read_server(client: KubeClient) -> tuple[str, datetime]:
    """Read the version of the API server, such as "v1.36.1", and its clock, to the second.

    Raises:
        KubeError: It cannot be reached, refuses to answer, or something else answers.
    """
    try:
        answer = (await client.request("GET", "/version", timeout=SECONDS)).check()
        version = msgspec.json.decode(answer.body, type=dict[str, Any]).get("gitVersion", "")
        return str(version), parsedate_to_datetime(answer.headers["Date"])
    except TimeoutError as error:
        raise KubeUnreachableError(f"GET /version: {error or 'no answer in time'}") from error
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        text = "GET /version: the answer is none of an API server"
        raise KubeUnreachableError(text) from error
