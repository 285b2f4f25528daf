"""What plugins answered about equal pods, by row, and for how long that is valid."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gateway.cluster.state import ClusterState
from gateway.cycle.decision import PluginRecord
from gateway.cycle.nodes import Mask, Rows
from moorage.plugin.scope import Scope

NEVER = -1

Values = npt.NDArray[Any]


class Answers:
    """What the plugins of one phase answered about equal pods: some numbers for each row.

    Attributes:
        values: The numbers: a line for each plugin, or one for all. Shape (lines, capacity).
        labels: What the numbers mean: the code of each reason, or the line of each plugin.
        plugins: The plugins that ran, and whether they skipped.
        version: That of the plugins.
        source: The pod that they were asked about last, as NAMESPACE/NAME.
    """

    __slots__ = ("_valid_at", "labels", "plugins", "source", "values", "version")

    def __init__(
        self, labels: dict[Any, int], lines: int, kind: type[Any], capacity: int, version: str
    ) -> None:
        """Know nothing yet about *capacity* rows."""
        self.labels = labels
        self.values: Values = np.zeros((lines, capacity), kind)
        self.plugins: Sequence[tuple[str, bool]] = ()
        self.version = version
        self.source = ""
        self._valid_at = np.full(capacity, NEVER, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return int(self.values.nbytes + self._valid_at.nbytes)

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self._valid_at)

    def is_stale(self, at: Rows, state: ClusterState, scope: Scope) -> Mask:
        """Return for each row in *at* whether plugins of such a scope have to be asked."""
        valid_at = self._valid_at[at]
        if scope >= Scope.CLUSTER:
            stale: Mask = valid_at < state.generation
            return stale
        stale = state.rows.touched[at] > valid_at
        if scope >= Scope.MANIFESTS:
            stale |= valid_at < state.manifests_changed
        return stale

    def others_stale(self, at: Rows, state: ClusterState, scope: Scope, most: int) -> list[int]:
        """Return at most *most* stale rows that are not in *at* and were asked about before."""
        if scope >= Scope.CLUSTER:
            return []  # everything is stale
        rows = np.arange(state.rows.capacity)
        others = self.is_stale(rows, state, scope) & (self._valid_at[rows] > NEVER)
        others[at] = False
        found, names = [], state.rows.names
        for row in others.nonzero()[0][:most].tolist():
            if names[row] is None:
                self._valid_at[row] = NEVER  # its node is gone: it is looked at once
            else:
                found.append(row)
        return found

    def learn(
        self, at: Rows, values: Values, generation: int, ran: Sequence[PluginRecord], pod: str
    ) -> None:
        """Take over what plugins answered about a pod and some rows, valid for a generation."""
        self._valid_at[at] = generation
        if values.size:
            self.values[:, at] = values
        # Where no nodes were left, the plugins after that did not run.
        plugins = [(each.plugin, each.skipped) for each in ran]
        self.plugins = max(plugins, self.plugins, key=len)
        self.source = pod

    def reports(self, ran: Sequence[PluginRecord]) -> list[PluginRecord]:
        """Return what plugins did, those included that were not asked."""
        by_name = {each.plugin: each for each in ran}
        reports = []
        for plugin, skipped in self.plugins:
            report = by_name.get(plugin)
            reports.append(report or PluginRecord(plugin=plugin, seconds=0.0, skipped=skipped))
        return reports
