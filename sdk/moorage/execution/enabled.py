"""A plugin instance with its place in a profile, as services and tests run it."""

from dataclasses import dataclass, field

from moorage.errors import PluginFailedError
from moorage.execution.breaker import Breaker
from moorage.plugin.base import Plugin


@dataclass(slots=True, kw_only=True)
class EnabledPlugin:
    """A plugin instance in a profile.

    Attributes:
        plugin: The instance.
        weight: The weight of its scores, at least 1.
        aborts: Whether its failure fails the cycle; otherwise the cycle goes on without it.
        time_budget: The time that it may take at each extension point, in seconds.
        breaker: Suspends it after repeated overruns.
        prepares: Whether the plugin overrides `prepare`.
    """

    plugin: Plugin
    weight: int = 1
    aborts: bool = True
    time_budget: float = 1.0
    breaker: Breaker = field(default_factory=Breaker)
    prepares: bool = field(init=False)

    def __post_init__(self) -> None:
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
            raise PluginFailedError(
                self.name, point, "suspended: it overran its time budget several times in a row"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Plugins in the order in which they run."""

    name: str
    plugins: tuple[EnabledPlugin, ...]
