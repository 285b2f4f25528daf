"""A plugin instance with its place in a profile, as services and tests run it."""

from dataclasses import dataclass, field

from moorage.errors import PluginFailedError
from moorage.execution.background import Background
from moorage.execution.breaker import OVERRUNS, SUSPENSION_SECONDS, Breaker
from moorage.execution.failure_log import FailureLog
from moorage.plugin.base import DEFAULT_TIME_BUDGET, Plugin
from moorage.plugin.cycle_state import CycleState
from moorage.plugin.filter import FilterPlugin


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
