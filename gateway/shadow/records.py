"""What is known about shadows, as `GET /shadow` shows it."""

from datetime import datetime
from typing import Literal

import msgspec

from gateway.decisions.records import Record

Kind = Literal["filter", "winner"]
"""In what a shadow disagrees: which nodes can run the pod, or which one is the best."""

Skip = Literal["busy", "share", "changed", "live failed"]
"""Why a cycle was not compared: another one came or ran, the share of the time is used up, no
replica could show its state any more, or the live profile has no answer."""

SKIPS: tuple[Skip, ...] = ("busy", "share", "changed", "live failed")


class FilterDifference(Record):
    """Nodes on which one of the two profiles rejects the pod: its plugin and reason.

    `by` is who does; `node` is one of them.
    """

    by: Literal["live", "shadow"]
    plugin: str
    reason: str
    nodes: int
    node: str


class WinnerDifference(Record):
    """The best node of both profiles, "" if there is none, and what decides between the two.

    `text` is the reason in words with numbers; `reason` is the same without nodes and numbers.
    With `is_rejection` one of the two profiles rejects the other's best node.
    """

    live: str
    shadow: str
    plugin: str
    reason: str
    text: str
    is_rejection: bool = False


class Disagreement(Record):
    """A cycle in which a shadow would have decided otherwise.

    Attributes:
        id: That of the decision.
        nodes: How many nodes the cycle was about.
        feasible: How many of them the live profile lets pass.
        shadow_feasible: How many of them the shadow does.
        live: The live profile's best node if the shadow has another one.
        shadow: The shadow's best node if it is another one.
        reasons: Why, in words.
    """

    id: str
    time: datetime
    namespace: str
    pod: str
    uid: str
    nodes: int
    feasible: int
    shadow_feasible: int
    live: str = ""
    shadow: str = ""
    reasons: list[str] = msgspec.field(default_factory=list)
    filter: list[FilterDifference] = msgspec.field(default_factory=list)
    winner: WinnerDifference | None = None


class ReasonCycles(Record):
    """In how many cycles a shadow disagreed for one reason."""

    kind: Kind
    plugin: str
    reason: str
    cycles: int


class ShadowReport(Record, omit_defaults=False):
    """A shadow, since it or its profile last changed.

    Attributes:
        agreement: The share of the compared cycles in which it agreed; None before the first.
        rank_correlation: The mean of Kendall's tau over the best nodes, -1..1; None before the
            first.
        max_share: The share of the time that it may take.
        share: The share that it took.
        last_failure: Why it failed last.
        reasons: Those that are most frequent, in descending order.
        disagreements: The newest, newest first.
    """

    profile: str
    since: datetime
    policy_revision: str
    max_share: float
    share: float
    agreement: float | None
    rank_correlation: float | None
    compared: int
    agreed: int
    disagreed_filter: int
    disagreed_winner: int
    failed: int
    last_failure: str
    skipped: dict[str, int]
    reasons: list[ReasonCycles]
    disagreements: list[Disagreement]
