"""Which verb, and which plugin of it, answers at a path."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.edge.aliases import WITH_PLUGIN, Alias, verb_path
from gateway.edge.exchange import Exchange
from gateway.edge.metrics import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What answers at a path: a verb with all plugins, or with one alone."""

    verb: Verb
    exchange: Exchange
    plugin: str = ""


class Routes:
    """All paths: each verb's, those of its plugins below it, and aliases."""

    def __init__(
        self, exchanges: Mapping[Verb, Exchange], prefix: str, aliases: Iterable[Alias]
    ) -> None:
        """Put the verbs below *prefix*, and at their aliases."""
        self._verbs = {
            verb_path(prefix, verb): Route(verb=verb, exchange=exchange)
            for verb, exchange in exchanges.items()
        }
        self._by_path = self._verbs | {
            alias.path: Route(verb=alias.verb, exchange=exchanges[alias.verb], plugin=alias.plugin)
            for alias in aliases
        }

    def find(self, path: str) -> Route | None:
        """Return what answers at a path; a slash at its end makes no difference."""
        path = path.removesuffix("/")
        if (route := self._by_path.get(path)) is not None:
            return route
        root, _, plugin = path.rpartition("/")
        above = self._verbs.get(root)
        if above is None or above.verb not in WITH_PLUGIN or not plugin:
            return None
        return Route(verb=above.verb, exchange=above.exchange, plugin=plugin)

    def known(self) -> list[str]:
        """Return all paths, without those of plugins."""
        return list(self._by_path)
