"""The audit log: one line of JSON for each write, in the form of Kubernetes' audit.k8s.io/v1."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from typing import Any
from uuid import uuid4

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.table import Target
from sandbox.apiserver.store.store import encode

READS = frozenset({"get", "list", "watch"})
INJECTED = "sandbox.moorage.io/fault"
"""The annotation of a request that a fault refused."""

CLIENT_GONE = 504
"""What the real server notes as the code of a request whose client hung up."""


@contextmanager
def auditing(
    file: FileIO | None, request: web.Request, verb: str, target: Target
) -> Iterator["AuditEntry"]:
    """Note a request in the audit log, if there is one, for as long as the block lasts.

    Lines are in the order in which writes happened, each in the file before its write is answered.
    Requests that failed are in it too, and those whose client hung up. A connection that a fault
    cut before the write leaves no line.
    """
    entry = AuditEntry(file if verb not in READS else None, request, verb, target)
    try:
        yield entry
    except StatusError as error:
        entry.write(error.code)
        raise
    except asyncio.CancelledError:
        entry.write(CLIENT_GONE)
        raise


class AuditEntry:
    """One request in the audit log; the first `write` counts."""

    def __init__(
        self, file: FileIO | None, request: web.Request, verb: str, target: Target
    ) -> None:
        self._file = file
        self._request = request
        self._verb = verb
        self._target = target
        self._received = _now()
        self.annotations: dict[str, str] = {}
        self.body: bytes = b""
        """The body of the request, once it was read."""

    def write(self, code: int) -> None:
        """Write the line."""
        file, self._file = self._file, None
        if file:
            file.write(encode(self._event(code)) + b"\n")

    def _event(self, code: int) -> Mapping[str, Any]:
        target, body = self._target, self._object()
        metadata = body.get("metadata", {})
        binding = body if isinstance(body.get("target"), dict) else {}
        reference = {
            "resource": target.resource.plural,
            "namespace": target.namespace,
            "name": target.name or metadata.get("name"),
            "uid": metadata.get("uid"),
            "apiGroup": target.resource.group,
            "apiVersion": target.resource.version,
            "subresource": target.subresource,
        }
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Request" if binding else "Metadata",
            "auditID": str(uuid4()),
            "stage": "ResponseComplete",
            "requestURI": self._request.raw_path,
            "verb": self._verb,
            "user": {"username": "system:anonymous"},
            "sourceIPs": [self._request.remote or ""],
            "userAgent": self._request.headers.get("User-Agent", ""),
            "objectRef": {key: value for key, value in reference.items() if value},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": self._received,
            "stageTimestamp": _now(),
        }
        if binding:
            event["requestObject"] = binding
        return event | ({"annotations": self.annotations} if self.annotations else {})

    def _object(self) -> Mapping[str, Any]:
        """Return the object that was sent, if it was one."""
        if self._verb != "create":
            return {}
        try:
            body = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return {}
        return body if isinstance(body, dict) and isinstance(body.get("metadata"), dict) else {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
