"""What people read of the controller: Events of pods, and lines."""

from collections.abc import Callable
from typing import Final

from cli.capacity.cluster import WaitingPod
from gateway.decisions.capacity import CONTROLLER, NODE_ASKED
from moorage_host.kube.events import EventWriter

MOST_REPORTED: Final = 10_000
"""Pods of which it is known what was reported last."""


class Reporter:
    """Reports each thing once, until it changes.

    Attributes:
        say: Takes a line of what was done.
    """

    def __init__(self, events: EventWriter, say: Callable[[str], object]) -> None:
        self._events = events
        self._reported: dict[str, str] = {}
        self.say = say

    def asked(self, waiting: WaitingPod, title: str) -> None:
        """Report that a node was asked for; *title* is whom."""
        self._report(waiting, NODE_ASKED, f"a node was asked for ({title})")
        self.say(f"{waiting.pod.namespace}/{waiting.pod.name}: a node was asked for")

    def refuse(self, waiting: WaitingPod, reason: str, note: str) -> None:
        """Report why no node is asked for; once, until that changes."""
        if self._reported.get(waiting.uid) != note:
            self._reported.pop(waiting.uid, None)
            self._reported[waiting.uid] = note
            while len(self._reported) > MOST_REPORTED:
                del self._reported[next(iter(self._reported))]
            self._report(waiting, reason, note)
            self.say(f"{waiting.pod.namespace}/{waiting.pod.name}: {note}")

    def _report(self, waiting: WaitingPod, reason: str, note: str) -> None:
        pod = waiting.pod
        self._events.report(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            reason,
            note,
            kind="Normal" if reason == NODE_ASKED else "Warning",
            action="Scaling",
            controller=CONTROLLER,
            series=(pod.uid, reason, note),
        )
