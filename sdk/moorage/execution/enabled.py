"""A plugin instance with its place in a profile, as services and tests run it.

It is started and stopped here, with what it does in the background, and suspended for a while if it
overruns its time budget again and again, so that it does not slow every cycle.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from moorage.errors import PluginFailedError
from moorage.execution.background import Background
from moorage.execution.failure import FailureLog
from moorage.plugin.base import DEFAULT_TIME_BUDGET, Plugin
from moorage.plugin.cycle_state import CycleState
from moorage.plugin.filter import FilterPlugin

OVERRUNS = 3
"""Cycles in a row that a plugin may overrun its time budget in before it is suspended."""

SUSPENSION_SECONDS = 30.0
"""How long a suspended plugin is left alone before it is tried again."""

START_SECONDS: Final = 10.0
"""How long `start` of a plugin may take; cycles wait for it."""

STOP_SECONDS: Final = 5.0
"""How long `stop` of a plugin, and the end of its background work, may take."""


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Counts overruns in a row; open means that the plugin is suspended.

    Attributes:
        clock: A monotonic clock, in seconds.
        overruns: How many there were in a row.
        last: Where the last one was: the method, and in brackets file and line.
        opened_at: When the plugin was suspended, on the clock.
    """

    clock: Callable[[], float] = time.monotonic
    overruns: int = 0
    last: str = ""
    opened_at: float = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether the plugin is suspended now. After the suspension one cycle tries it again."""
        return self.clock() - self.opened_at < SUSPENSION_SECONDS

    def overran(self, place: str) -> None:
        """Note that the plugin overran its time budget at *place*; other failures cost no time."""
        self.overruns += 1
        self.last = place
        if self.overruns >= OVERRUNS:
            self.opened_at = self.clock()

    def succeeded(self) -> None:
        """Note a cycle within the budget, at all extension points."""
        self.overruns = 0


@dataclass(slots=True, kw_only=True)
class EnabledPlugin:
    """A plugin instance in a profile.

    Attributes:
        plugin: The instance.
        weight: The weight of its scores, at least 1.
        aborts: Whether its failure fails the cycle; otherwise the cycle goes on without it.
        time_budget: The time that it may take at each extension point, in seconds.
        breaker: Suspends it after repeated overruns.
        failures: Its failures, as the log gets them.
        background: Its background work.
        name: The plugin's name.
        prepares: Whether the plugin overrides `prepare`.
        may_claim: Whether it is a filter plugin that overrides `wants_claim`.
        cycle_state: What it keeps and notes in a cycle.
    """

    plugin: Plugin
    weight: int = 1
    aborts: bool = True
    time_budget: float = DEFAULT_TIME_BUDGET
    breaker: Breaker = field(default_factory=Breaker)
    failures: FailureLog = field(default_factory=FailureLog)
    background: Background = field(init=False)
    name: str = field(init=False)
    prepares: bool = field(init=False)
    may_claim: bool = field(init=False)
    cycle_state: CycleState = field(init=False)

    def __post_init__(self) -> None:
        self.background = Background(self.plugin, step_seconds=self.time_budget)
        # Each cycle reads these, for each plugin: an attribute costs less than a call.
        self.name = self.plugin.name
        self.prepares = type(self.plugin).prepare is not Plugin.prepare
        self.may_claim = (
            isinstance(self.plugin, FilterPlugin)
            and type(self.plugin).wants_claim is not FilterPlugin.wants_claim
        )
        self.cycle_state = self.plugin.cycle_state

    def check_not_suspended(self, point: str) -> None:
        """Refuse to run a plugin that its breaker suspends.

        Raises:
            PluginFailedError: It overran its time budget too often recently.
        """
        breaker = self.breaker
        if breaker.overruns >= OVERRUNS and breaker.is_open:
            problem = (
                f"suspended for {SUSPENSION_SECONDS:g} s: {self.breaker.overruns} overruns of "
                f"{self.time_budget:g} s, the last in {self.breaker.last}"
            )
            raise PluginFailedError(self.name, point, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Plugins in the order in which they run."""

    name: str
    plugins: tuple[EnabledPlugin, ...]


async def start_plugin(enabled: EnabledPlugin) -> None:
    """Start a plugin; what its `start` raises goes through, and nothing of it runs any more then.

    Raises:
        TimeoutError: `start` took too long.
    """
    enabled.plugin.begin_background_by(enabled.background.begin)
    try:
        async with asyncio.timeout(START_SECONDS):
            await enabled.plugin.start()
    except BaseException:
        await _end_background(enabled)
        raise


async def stop_plugin(enabled: EnabledPlugin) -> None:
    """End the background work of a plugin, then stop it; what its `stop` raises goes through.

    Raises:
        TimeoutError: `stop` took too long.
    """
    await _end_background(enabled)
    async with asyncio.timeout(STOP_SECONDS):
        await enabled.plugin.stop()


async def _end_background(enabled: EnabledPlugin) -> None:
    enabled.plugin.begin_background_by(None)
    await enabled.background.end(STOP_SECONDS)
