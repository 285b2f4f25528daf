"""A plugin instance with its place in a profile, as services and tests run it."""

from dataclasses import dataclass, field

from moorage.errors import PluginFailedError
from moorage.execution.background import Background
from moorage.execution.breaker import SUSPENSION_SECONDS, Breaker
from moorage.execution.failure_log import FailureLog
from moorage.plugin.base import DEFAULT_TIME_BUDGET, Plugin


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
        prepares: Whether the plugin overrides `prepare`.
    """

    plugin: Plugin
    weight: int = 1
    aborts: bool = True
    time_budget: float = DEFAULT_TIME_BUDGET
    breaker: Breaker = field(default_factory=Breaker)
    failures: FailureLog = field(default_factory=FailureLog)
    background: Background = field(init=False)
    prepares: bool = field(init=False)

    def __post_init__(self) -> None:
        self.background = Background(self.plugin, step_seconds=self.time_budget)
        self.prepares = type(self.plugin).prepare is not Plugin.prepare

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.plugin.name

    def check_not_suspended(self, point: str) -> None:
        """Refuse to run a plugin that its breaker suspends.

        Raises:
            PluginFailedError: It overran its time budget too often recently.
        """
        if self.breaker.is_open:
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
