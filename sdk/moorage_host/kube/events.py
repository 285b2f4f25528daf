"""Events of the group events.k8s.io, as the API server takes them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from moorage_host.kube.response import micro_time

LONGEST_NOTE = 1024
"""Bytes of a note that the API server accepts: no setting can change that."""

LONGEST_NAME = 230
"""Characters of what an Event is about in its own name, which must stay within 253."""


def events_path(namespace: str) -> str:
    """Return the path of the Events of a namespace."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def make_event(
    regarding: Mapping[str, str],
    *,
    kind: str,
    reason: str,
    action: str,
    note: str,
    controller: str,
    instance: str,
) -> dict[str, Any]:
    """Return an Event of now.

    Args:
        regarding: The object that it is about, with its namespace and name.
        kind: "Normal" or "Warning".
        reason: Why, in CamelCase.
        action: What was done, in CamelCase.
        note: The same for people; what is too long is cut.
        controller: Who reports, such as "moorage-binder".
        instance: Which process of it.
    """
    moment = datetime.now(UTC)
    nanoseconds = int(moment.timestamp() * 1e6) * 1000
    name = f"{regarding['name'][:LONGEST_NAME].rstrip('.-')}.{nanoseconds:x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": regarding["namespace"]},
        "eventTime": micro_time(moment),
        "reportingController": controller,
        "reportingInstance": instance[:128],
        "action": action,
        "reason": reason,
        "type": kind,
        "note": note.encode()[:LONGEST_NOTE].decode(errors="ignore"),
        "regarding": dict(regarding),
    }
