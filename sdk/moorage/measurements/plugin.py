"""What plugins that measure nodes share."""

from typing import Protocol

import numpy as np

from moorage.plugin.base import Plugin
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Mask


class Source(Protocol):
    """Something that asks in the background, such as a `PrometheusSource`."""

    async def start(self) -> None:
        """Begin to ask."""

    async def stop(self) -> None:
        """Ask no more."""

    def trouble(self, nodes: Nodes, missing: Mask) -> str:
        """Return how old measurements are if that is older than usual, and why *missing* ones are.

        Empty if all is well, or if nothing is known but that they are missing.
        """


class MeasuringPlugin(Plugin):
    """A plugin whose source lives as long as it does; to be mixed in before the kind of plugin.

    Its `__init__` sets `source`; None if there is nothing to ask. It is not declared here, so that
    it has the type of what is set.
    """

    async def start(self) -> None:
        """Begin to ask."""
        if source := self._source:
            await source.start()

    async def stop(self) -> None:
        """Ask no more."""
        if source := self._source:
            await source.stop()

    def note_missing(
        self, nodes: Nodes, values: Scores, on_missing: str, *, expected: bool = False
    ) -> None:
        """Note how many of *nodes* have no measurements, and what is known about that.

        Args:
            nodes: The nodes.
            values: What was measured, with NaN where nothing was.
            on_missing: What the policy makes of such nodes.
            expected: Some have none even if all is well, so that this alone is no note.
        """
        missing = np.isnan(values)
        trouble = self._source.trouble(nodes, missing) if self._source else ""
        counted = missing.any() and (trouble or not expected)
        parts = [_count(nodes, missing, on_missing)] if counted else []
        if trouble:
            parts.append(trouble)
        if parts:
            self.note("; ".join(parts))

    @property
    def _source(self) -> Source | None:
        source: Source | None = getattr(self, "source", None)
        return source


def _count(nodes: Nodes, missing: Mask, on_missing: str) -> str:
    example = "" if missing.all() else f", such as {nodes.name(int(missing.argmax()))}"
    count = f"{np.count_nonzero(missing)} of {len(nodes)}"
    return f"{count} nodes have no measurements{example} (onMissing: {on_missing})"
