"""Which verb, and which plugin of it, is at a path."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.edge.aliases import WITH_PLUGIN, Alias, verb_path
from gateway.edge.exchange import Exchange
from gateway.edge.metrics import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is at a path, and below it: whether plugins can be named there."""

    verb: Verb
    exchange: Exchange
    plugin: str = ""
    has_plugins: bool = False


class Places:
    """All paths."""

    def __init__(
        self, exchanges: Mapping[Verb, Exchange], prefix: str, aliases: Iterable[Alias]
    ) -> None:
        """Put the verbs below *prefix*, and at their aliases."""
        self._at = {
            verb_path(prefix, verb): Place(
                verb=verb, exchange=exchange, has_plugins=verb in WITH_PLUGIN
            )
            for verb, exchange in exchanges.items()
        } | {
            alias.path: Place(verb=alias.verb, exchange=exchanges[alias.verb], plugin=alias.plugin)
            for alias in aliases
        }
        self.exact = self._at.get

    def found(self, path: str) -> tuple[Place | None, str]:
        """Return what is at a path, however it is written, and the plugin that it names or ""."""
        path = path.removesuffix("/")
        root, _, plugin = path.rpartition("/")
        above = self._at.get(root)
        if above is not None and above.has_plugins and plugin:
            return above, plugin
        place = self._at.get(path)
        return place, place.plugin if place else ""

    def known(self) -> list[str]:
        """Return all paths."""
        return list(self._at)
