"""Reads audit logs, of the embedded API server and of the real one alike."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

INJECTED = "sandbox.moorage.io/fault"

Act = Literal["create", "delete", "bind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write about a pod.

    Attributes:
        act: What was asked for.
        name: The pod.
        node: Where it was to be bound.
        code: The answer.
        injected: A fault refused it before anything was done.
        client: The user agent.
        at: When it was done, in seconds since 1970.
    """

    act: Act
    name: str
    node: str
    code: int
    injected: bool
    client: str
    at: float

    @property
    def done(self) -> bool:
        """Whether it changed something."""
        return self.code < 300


class AuditReader:
    """Reads what was added to an audit log since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[Write]:
        """Return the new writes about pods, in the order in which they were done."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        writes = [write for line in complete.splitlines() for write in _write(line)]
        return sorted(writes, key=lambda write: write.at)


def _write(line: bytes) -> Iterator[Write]:
    event = json.loads(line)
    target = event.get("objectRef") or {}
    if event["stage"] != "ResponseComplete" or target.get("resource") not in ("pods", "bindings"):
        return
    binding = target.get("subresource") == "binding" or target["resource"] == "bindings"
    if target.get("subresource") and not binding:
        return
    act: Act
    if binding:
        act = "bind"
    elif event["verb"] in ("create", "delete"):
        act = event["verb"]
    else:
        return
    yield Write(
        act=act,
        name=target.get("name", ""),
        node=(event.get("requestObject") or {}).get("target", {}).get("name", ""),
        code=event["responseStatus"]["code"],
        injected=INJECTED in (event.get("annotations") or {}),
        client=event.get("userAgent", ""),
        at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
    )
