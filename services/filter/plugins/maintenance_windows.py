"""Keeps pods off nodes whose maintenance begins before they have ended."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from moorage import Arguments, FilterPlugin, Meta, Node, Pod, Rejection, parse_duration
from moorage.files import load_all
from moorage.measurements import Duration, positive

SOON = Rejection("maintenance of the node begins before the pod has ended", cured_by="capacity")
NOW = Rejection("node is under maintenance", cured_by="capacity")
UNREADABLE = Rejection("the node's maintenance windows cannot be read")

POLL_SECONDS = 5.0


class Window(NamedTuple):
    """When a node is under maintenance."""

    start: datetime
    end: datetime


class MaintenanceWindows(FilterPlugin):
    """Keeps pods off nodes whose maintenance begins before the pods have ended, or has begun.

    A pod takes as long as its annotation says, else the lead time. Pods are tried again when a
    window ends that kept them off a node.
    """

    class Args(Arguments):
        """Where windows are written, and for how long pods run.

        Attributes:
            annotation: The nodes' annotation with the windows: START/END in ISO 8601, separated by
                commas.
            file: YAML or JSON with further windows by node name, such as a mounted ConfigMap;
                reread when it changes.
            duration_annotation: The pods' annotation that says how long they run, such as "2h".
            lead: How long before a window to keep off pods of unknown duration.
        """

        annotation: Annotated[str, Meta(min_length=1)] = "example.com/maintenance"
        file: str = ""
        duration_annotation: Annotated[str, Meta(min_length=1)] = "example.com/duration"
        lead: Duration = "1h"

        def __post_init__(self) -> None:
            positive(self.lead)

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments."""
        super().__init__(args)
        self._lead = timedelta(seconds=parse_duration(self.args.lead))
        self._by_node: dict[str, str] = {}
        self._read_at = 0.0
        self._ends: set[datetime] = set()

    async def start(self) -> None:
        """Read the file, and look every few seconds for windows that have ended."""
        self._read_file()
        self.poll(self._look, POLL_SECONDS)

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Reject the node if the pod would not have ended before its next window, or in one."""
        texts = (node.annotations.get(self.args.annotation), self._by_node.get(node.name))
        if not any(texts):
            return None
        now = self.now()
        end = now + self._duration(pod)
        try:
            windows = [window for text in texts if text for window in windows_of(text)]
        except ValueError:
            return UNREADABLE
        for window in windows:
            if window.start < end and now < window.end:
                self._ends.add(window.end)
                return NOW if window.start <= now else SOON
        return None

    def _duration(self, pod: Pod) -> timedelta:
        try:
            return timedelta(seconds=parse_duration(pod.annotations[self.args.duration_annotation]))
        except (KeyError, ValueError):
            return self._lead

    def _look(self) -> None:
        now = self.now()
        ended = {end for end in self._ends if end <= now}
        if ended:
            self._ends -= ended
            self.retry_rejected("a maintenance window has ended")
        self._read_file()

    def _read_file(self) -> None:
        """Read the file if it has changed.

        Raises:
            ConfigurationError, OSError: It cannot be read.
            ValueError: It has something else than windows in it.
        """
        if not self.args.file:
            return
        file = Path(self.args.file)
        changed = file.stat().st_mtime
        if changed == self._read_at:
            return
        by_node = msgspec.convert(next(load_all(file), None), dict[str, str])
        for text in by_node.values():
            windows_of(text)
        if self._read_at:
            self.retry_rejected("the file of maintenance windows has changed")
        self._by_node, self._read_at = by_node, changed


@lru_cache(maxsize=10_000)
def windows_of(text: str) -> Sequence[Window]:
    """Return the windows of a text: START/END in ISO 8601, several with commas between them.

    Raises:
        ValueError: It has another form, or one ends before it starts.
    """
    found = []
    for part in text.split(","):
        start, slash, end = part.strip().partition("/")
        if not slash:
            raise ValueError(f"{part.strip()!r} is not START/END")
        window = Window(_time(start), _time(end))
        if window.end <= window.start:
            raise ValueError(f"{part.strip()!r} ends before it starts")
        found.append(window)
    return found


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
