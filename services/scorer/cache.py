"""Caches raw scores for equal pods; see `moorage_host.plugins.cache`.

Normalisation and totals are about the nodes of one cycle, and so are never cached.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from moorage import Nodes, Scores
from moorage_host.plugins.cache import Cache, Entry, Found, Question
from services.scorer.engine import ScoreRun, continued, run_normalization, run_shard


class ScoreCache(Cache[ScoreRun]):
    """Caches raw scores. An entry has a line for each plugin with an opinion, in order."""

    async def ask(self, question: Question[ScoreRun], asked: Nodes) -> ScoreRun:
        """Score some nodes, without normalisation."""
        return await run_shard(
            question.profile,
            question.pod,
            question.nodes,
            question.supervisor,
            rows=asked.rows,
        )

    def new_entry(self, run: ScoreRun, capacity: int) -> Entry:
        """Return an entry for the plugins that did not skip the pod."""
        labels = tuple(_raw(run))
        return Entry(np.zeros((len(labels), capacity)), labels)

    def values(self, entry: Entry, run: ScoreRun) -> npt.NDArray[Any] | None:
        """Return the raw scores, unless other plugins skipped than before."""
        raw = _raw(run)
        return np.array(list(raw.values())) if tuple(raw) == entry.labels else None

    async def answer(self, question: Question[ScoreRun], found: Found) -> ScoreRun:
        """Return the raw scores of a shard, or rank all nodes."""
        values = found.entry.values[:, question.shard.rows]
        raw: dict[str, Scores] = dict(zip(found.entry.labels, values, strict=True))
        if question.shard is not question.nodes:
            ranked = ScoreRun(plugins=found.reports(), raw=raw)
        else:
            ranked = await run_normalization(
                question.profile, question.pod, question.nodes, question.supervisor, raw=raw
            )
            plugins = continued(found.reports(), ranked.plugins)
            ranked = replace(ranked, plugins=plugins)
        return replace(ranked, cached_nodes=found.cached, cached_from=found.source)

    def difference(self, cached: ScoreRun, fresh: ScoreRun) -> str:
        """Return how many totals, or raw scores of a plugin, differ, and one of them."""
        if (cached.totals is None) is not (fresh.totals is None):
            return "only one answer has scores"
        before, now = dict(cached.raw), dict(fresh.raw)
        if cached.totals is not None and fresh.totals is not None:
            before, now = {"totals": cached.totals}, {"totals": fresh.totals}
        if before.keys() != now.keys():
            return "other plugins have scores"
        for name, scores in before.items():
            differ = np.flatnonzero(~np.isclose(scores, now[name], rtol=1e-6, atol=1e-6))
            if len(differ):
                first = int(differ[0])
                values = f"cached {scores[first]:g}, now {now[name][first]:g}"
                return f"{len(differ)} {name}, the first at position {first}: {values}"
        return ""


def _raw(run: ScoreRun) -> Mapping[str, Scores]:
    """Return the raw scores of a shard, or those that make up totals."""
    return run.raw or {each.plugin: each.raw for each in run.scores}
