"""Asks Prometheus again and again in the background, once for all plugins that want the same.

Called by `source`. A failure is kept as the problem and logged; nothing is raised, so
that scheduling goes on without measurements.
"""

import asyncio
import math
import random
import time
from collections.abc import Mapping
from typing import Final

import msgspec
import structlog

from moorage.backoff import Backoff
from moorage.measurements.plugin import PrometheusError
from moorage.measurements.prometheus import gauges
from moorage.measurements.prometheus.client import Values, ask, by_measure, nodes_by_preset
from moorage.measurements.prometheus.query import Measure, PrometheusSettings, query_text

FIRST_BACKOFF: Final = 1.0
"""The longest wait after the first failure, in seconds."""

_log = structlog.get_logger()


class Poller:
    """One query and its latest answer.

    Attributes:
        values: The latest answer; empty before the first.
        answered: When it came, on the monotonic clock; minus infinity before the first.
        problem: Why there is no newer answer; empty if the latest query had one.
        polled: Set once the first query has ended, well or not.
    """

    def __init__(
        self, name: str, settings: PrometheusSettings, measures: Mapping[str, Measure]
    ) -> None:
        self.values: Values = {}
        self.answered = -math.inf
        self.problem = f"Prometheus at {settings.address} has not been asked yet"
        self.polled = asyncio.Event()
        self._name = name
        self._settings = settings
        self._measures = measures
        self._checked = False
        self._complained = False
        self._task = asyncio.create_task(self._run(), name=f"poll {name}")
        gauges.started(name, settings.address)

    async def stop(self) -> None:
        """Ask no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        interval = self._settings.interval_seconds
        backoff = Backoff(min(FIRST_BACKOFF, interval), interval)
        while True:
            if await self._poll():
                backoff.reset()
                wait = interval * random.uniform(0.9, 1.0)
            else:
                wait = backoff.next()
            self.polled.set()
            await asyncio.sleep(wait)

    async def _poll(self) -> bool:
        try:
            layout = self._settings.layout
            samples = await ask(self._settings, self._measures, layout)
            self._adopt(by_measure(samples, layout))
            if not samples:
                await self._look_for_a_preset()
        except Exception as error:  # noqa: BLE001 - the next query may go well
            self._failed(error)
            return False
        return True

    def _adopt(self, values: Values) -> None:
        if self._complained:
            _log.info("Prometheus answers again.", source=self._name)
        self._complained = False
        self.values, self.answered, self.problem = values, time.monotonic(), ""
        nodes = len(set().union(*values.values()))
        if nodes:
            self._checked = False
        gauges.answered(self._name, self._settings.address, nodes)

    def _failed(self, error: Exception) -> None:
        gauges.failed(self._name, self._settings.address)
        problem = str(error) if isinstance(error, PrometheusError) else repr(error)
        if problem != self.problem:
            _log.warning("No measurements.", source=self._name, problem=problem)
        self.problem, self._complained = problem, True

    async def _look_for_a_preset(self) -> None:
        """Log, once, under which preset the query that returned nothing would return something."""
        if self._checked:
            return
        self._checked = True
        found = await nodes_by_preset(self._settings, self._measures)
        advice = "set preset to one of these" if found else "are nodes scraped at all?"
        _log.warning(
            "Prometheus knows no node under this preset.",
            source=self._name,
            label=self._settings.layout.label,
            nodes_by_preset=found,
            advice=advice,
        )


_running: dict[tuple[asyncio.AbstractEventLoop, bytes], tuple[Poller, list[object]]] = {}


def join_poller(
    user: object, name: str, settings: PrometheusSettings, measures: Mapping[str, Measure]
) -> Poller:
    """Return the poller for this query, shared with other users of this event loop."""
    text = query_text(measures, settings.layout)
    key = (asyncio.get_running_loop(), msgspec.json.encode((name, settings, text)))
    if key not in _running:
        _running[key] = (Poller(name, settings, measures), [])
    poller, users = _running[key]
    users.append(user)
    return poller


async def leave_poller(user: object) -> None:
    """Stop the poller that *user* joined if nobody else uses it."""
    for key, (poller, users) in list(_running.items()):
        if user in users:
            users.remove(user)
            if not users:
                del _running[key]
                await poller.stop()
