"""Why nodes do not fit a pod, and the sentence that users read about it."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

NOTE_LIMIT = 1024  # characters of an event's note


class Refusal(NamedTuple):
    """One node's "no". An unresolvable one cannot be cured by removing pods."""

    reasons: tuple[str, ...]
    unresolvable: bool = False


class Unschedulable(Exception):  # noqa: N818 - a verdict, carried like kube-scheduler's FitError
    """No node fits.

    Attributes:
        plugins: Who refused; decides which cluster events are worth another try.
        aftermath: What preemption had to say.
        nominated: The node to hold for the pod, "" to hold none any more, None to leave it.
    """

    def __init__(
        self, node_count: int, refusals: Mapping[str, Refusal], plugins: frozenset[str]
    ) -> None:
        super().__init__()
        self.node_count = node_count
        self.refusals = refusals
        self.plugins = plugins
        self.aftermath = ""
        self.nominated: str | None = None

    def __str__(self) -> str:
        sentence = summary(self.node_count, self.refusals)
        return f"{sentence} {self.aftermath}" if self.aftermath else sentence


class NoNodesError(Exception):
    """The cluster is empty."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"


def summary(node_count: int, refusals: Mapping[str, Refusal], elsewhere: str = "") -> str:
    """Group equal reasons: `0/3 nodes are available: 1 too hot, 2 Insufficient cpu.`.

    `elsewhere` is the reason of nodes without a refusal of their own.
    """
    counts = Counter(reason for refusal in refusals.values() for reason in refusal.reasons)
    if elsewhere and node_count > len(refusals):
        counts[elsewhere] += node_count - len(refusals)
    grouped = sorted(f"{count} {reason}" for reason, count in counts.items())
    sentence = f"0/{node_count} nodes are available:"
    return f"{sentence} {', '.join(grouped)}." if grouped else sentence


def truncated(message: str) -> str:
    """Cut a message to what fits an event."""
    return message if len(message) <= NOTE_LIMIT else message[: NOTE_LIMIT - 4] + " ..."
