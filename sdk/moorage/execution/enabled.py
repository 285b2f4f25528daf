"""A plugin instance with its place in a profile, as services and tests run it.

It is started and stopped here, with what it does in the background.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from moorage.execution.alarm import BudgetExceededError, Stepwise
from moorage.execution.background import Background
from moorage.execution.failure import FailureLog
from moorage.execution.mark import marked
from moorage.execution.overruns import Overruns
from moorage.plugin.cycle_state import CycleState
from moorage.plugin.hooks import FilterPlugin, Plugin
from moorage.plugin.values import DEFAULT_TIME_BUDGET

LOAD_SECONDS: Final = 30.0
"""How long it may take to import a file or a package of plugins, and to `start` a plugin."""

STOP_SECONDS: Final = 5.0
"""How long `stop` of a plugin, and the end of its background work, may take."""

BY_HAND: Final = 0.5
"""The part of its time budget that a plugin has in calls by hand."""


@dataclass(slots=True, kw_only=True)
class EnabledPlugin:
    """A plugin instance in a profile.

    Attributes:
        plugin: The instance.
        weight: The weight of its scores, at least 1.
        aborts: Whether its failure fails the cycle; otherwise the cycle goes on without it.
        time_budget: The time that it may take at each extension point, in seconds.
        by_size: Whether that is the default, which a small cluster needs less of.
        overruns: Its overruns, and whom it is not called for because of them.
        failures: Its failures, as the log gets them.
        background: Its background work.
        name: The plugin's name.
        mark: What marks that it runs.
        prepares: Whether the plugin overrides `prepare`.
        may_claim: Whether it is a filter plugin that overrides `wants_claim`.
        may_group: Whether it is a filter plugin that overrides `group`.
        cycle_state: What it keeps and notes in a cycle.
    """

    plugin: Plugin
    weight: int = 1
    aborts: bool = True
    time_budget: float = DEFAULT_TIME_BUDGET
    by_size: bool = False
    overruns: Overruns = field(default_factory=Overruns)
    failures: FailureLog = field(default_factory=FailureLog)
    background: Background = field(init=False)
    name: str = field(init=False)
    mark: bytes = field(init=False)
    prepares: bool = field(init=False)
    may_claim: bool = field(init=False)
    may_group: bool = field(init=False)
    cycle_state: CycleState = field(init=False)

    def __post_init__(self) -> None:
        self.background = Background(self.plugin, step_seconds=self.time_budget)
        # Each cycle reads these, for each plugin: an attribute costs less than a call.
        self.name = self.plugin.name
        self.mark = marked(self.name)
        self.prepares = type(self.plugin).prepare is not Plugin.prepare
        self.may_claim = (
            isinstance(self.plugin, FilterPlugin)
            and type(self.plugin).wants_claim is not FilterPlugin.wants_claim
        )
        self.may_group = (
            isinstance(self.plugin, FilterPlugin)
            and type(self.plugin).group is not FilterPlugin.group
        )
        self.cycle_state = self.plugin.cycle_state


def by_hand(enabled: EnabledPlugin) -> EnabledPlugin:
    """Return the same instance for calls by hand: with less time, and overruns of its own."""
    budget = enabled.time_budget * BY_HAND
    other = replace(enabled, time_budget=budget, overruns=Overruns())
    other.background = enabled.background
    return other


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Plugins in the order in which they run."""

    name: str
    plugins: tuple[EnabledPlugin, ...]


async def start_plugin(enabled: EnabledPlugin) -> None:
    """Start a plugin; what its `start` raises goes through, and nothing of it runs any more then.

    Raises:
        TimeoutError: `start` took too long, in one step or together.
    """
    enabled.plugin.begin_background_by(enabled.background.begin)
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            await Stepwise(enabled.plugin.start(), LOAD_SECONDS)
    except BudgetExceededError as error:
        await _end_background(enabled)
        raise TimeoutError(f"it has not started after {LOAD_SECONDS:g} s") from error
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
