"""Caches verdicts for equal pods; see `moorage_host.plugins.cache`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from moorage import Nodes
from moorage.execution import PluginRun
from moorage_host.plugins.cache import Cache, Entry, Found, Question
from services.filter.engine import FilterRun, PluginRejection, run_filters

MOST_REASONS = 1000
"""Reasons of one entry; a plugin may use another one each time."""


class FilterCache(Cache[FilterRun]):
    """Caches verdicts. An entry has codes of its own reasons, which grow with what it learns."""

    async def ask(self, question: Question[FilterRun], asked: Nodes) -> FilterRun:
        """Filter some nodes."""
        return await run_filters(question.profile, question.pod, asked, question.supervisor)

    def new_entry(self, run: FilterRun, capacity: int) -> Entry:
        """Return an entry without reasons."""
        return Entry(np.zeros((1, capacity), np.uint16), {})

    def values(self, entry: Entry, run: FilterRun) -> npt.NDArray[Any] | None:
        """Return the codes that the entry has for the reasons, unless these are too many."""
        known: dict[PluginRejection, int] = entry.labels
        codes = [0, *(known.setdefault(reason, len(known) + 1) for reason in run.reasons)]
        return np.array(codes, np.uint16)[run.codes] if len(known) <= MOST_REASONS else None

    async def answer(self, question: Question[FilterRun], found: Found) -> FilterRun:
        """Return the verdicts, with those reasons that are in use."""
        rows = question.shard.rows
        codes, reasons = found.entry.values[0, rows], list(found.entry.labels)
        feasible, *counts = np.bincount(codes, minlength=len(reasons) + 1).tolist()
        in_use = [reason for reason, count in zip(reasons, counts, strict=True) if count]
        if len(in_use) < len(reasons):
            numbers = np.cumsum([0, *(count > 0 for count in counts)], dtype=np.uint16)
            codes = numbers[codes]
        return FilterRun(
            codes=codes,
            reasons=in_use,
            plugins=_ran(found.reports(), in_use, is_any_left=feasible > 0),
            cached_nodes=found.cached,
            cached_from=found.source,
        )

    def difference(self, cached: FilterRun, fresh: FilterRun) -> str:
        """Return how many verdicts differ, and one of them."""
        before, now = _texts(cached), _texts(fresh)
        differing = [at for at, text in enumerate(before) if text != now[at]]
        if not differing:
            return ""
        first = differing[0]
        return f"{len(differing)} verdicts, the first: cached {before[first]}, now {now[first]}"


def _ran(
    reports: list[PluginRun], reasons: list[PluginRejection], *, is_any_left: bool
) -> list[PluginRun]:
    """Leave out the plugins that would not have run, as no nodes were left."""
    rejecting = {reason.plugin for reason in reasons}
    while reports and not is_any_left and reports[-1].plugin not in rejecting:
        reports.pop()
    return reports


def _texts(run: FilterRun) -> list[str]:
    texts = ["feasible", *(f"{each.plugin}: {each.rejection.reason}" for each in run.reasons)]
    return [texts[code] for code in run.codes.tolist()]
