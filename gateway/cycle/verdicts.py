"""What filter plugins say of nodes, by row; decoded once from what replicas answer."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle.decision import UNKNOWN_NODE, FilterRecord, GroupRecord
from gateway.cycle.nodes import NodeRows, NodeSet, index_of
from moorage.plugin.cycle_state import KeptValue

Codes = npt.NDArray[np.uint16]

UNKNOWN_NODE_CODE = 0xFFFF
"""The verdict on nodes that have no row; a cycle never has so many reasons."""


class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a plugin rejects nodes; preempting pods does not help if that is unresolvable."""

    plugin: str
    text: str
    unresolvable: bool = False


def _no_record() -> FilterRecord:
    return FilterRecord(nodes=0, feasible=0, seconds=0.0)


class Verdicts(msgspec.Struct, kw_only=True, eq=False):
    """The verdicts of a filter phase.

    Attributes:
        bitmap: The rows that it was about.
        codes: For each of them 0, or the number of the reason, from 1 on.
        reasons: Why nodes were rejected.
        record: What is kept of it: the verdicts by plugin, and what plugins report.
        generation: The verdicts are of this generation of the state, or of a later one.
        kept: What plugins keep for the bind.
        group: How the trial placement of the pod's group ended; None without a group.
        found: The nodes that it found, by the uid of the group's pods.
    """

    bitmap: bytes
    codes: Codes
    reasons: Sequence[Reason] = ()
    record: FilterRecord = msgspec.field(default_factory=_no_record)
    generation: int = 0
    kept: Mapping[str, KeptValue] = {}
    group: GroupRecord | None = None
    found: Mapping[str, str] = {}

    def on(self, row: int) -> Reason | Literal["feasible"] | None:
        """Return why the node in *row* was rejected; None if the phase was not about it."""
        index = index_of(self.bitmap, row)
        if index is None:
            return None
        code = int(self.codes[index])
        return self.reasons[code - 1] if code else "feasible"

    def rejected(self, nodes: NodeSet, rows: NodeRows) -> tuple[dict[str, str], dict[str, str]]:
        """Return the reasons by node: those that evicting pods might cure, and the others."""
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        if self.record.feasible == len(nodes.names):
            return failed, unresolvable
        targets = {
            code: (unresolvable if reason.unresolvable else failed, reason.text)
            for code, reason in enumerate(self.reasons, start=1)
        }
        targets[UNKNOWN_NODE_CODE] = (unresolvable, UNKNOWN_NODE)
        by_position = rows.to_call_order(self.codes, UNKNOWN_NODE_CODE)
        (positions,) = by_position.nonzero()
        names, codes = nodes.names, by_position[positions].tolist()
        for position, code in zip(positions.tolist(), codes, strict=True):
            target, text = targets[code]
            target[names[position]] = text
        return failed, unresolvable
