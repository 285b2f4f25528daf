"""Which verb, and which plugin of it, answers at a path.

Each verb has its path below the prefix, and each plugin one below that of its verb. An extender
that Moorage replaces had paths of its own: with aliases (`--extender-alias PATH=VERB/PLUGIN`)
kube-scheduler's configuration may stay as it is.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

from gateway.edge.metrics import Verb
from moorage.errors import ConfigurationError, suggestion

WITH_PLUGIN: frozenset[Verb] = frozenset({"filter", "prioritize"})
"""The verbs that one plugin alone can answer."""

_VERBS: Mapping[str, Verb] = {verb: verb for verb in get_args(Verb)}
_PATH = re.compile(r"(/[\w.~!$&'()*+;:@-]+)+", re.ASCII)


class Route(NamedTuple):
    """What answers at a path: a verb, with one plugin alone or with all of them for ""."""

    verb: Verb
    plugin: str = ""


class Paths:
    """All paths, without a slash at their ends, and what answers there.

    Attributes:
        routes: Those of the verbs and the aliases.
    """

    def __init__(self, prefix: str, aliases: Iterable[str]) -> None:
        """Put the verbs below *prefix*, and at their aliases.

        Raises:
            ConfigurationError: An alias is not PATH=VERB or PATH=VERB/PLUGIN, or its path is taken.
        """
        root = f"/{prefix.strip('/')}/".replace("//", "/")
        self._verbs = {f"{root}{verb}": Route(verb) for verb in _VERBS.values()}
        self.routes = {**self._verbs, **_read_aliases(aliases, self._verbs)}

    def find(self, path: str) -> Route | None:
        """Return what answers at a path; a slash at its end makes no difference."""
        path = path.removesuffix("/")
        if (route := self.routes.get(path)) is not None:
            return route
        root, _, plugin = path.rpartition("/")
        above = self._verbs.get(root)
        if above is None or above.verb not in WITH_PLUGIN or not plugin:
            return None
        return Route(above.verb, plugin)


def _read_aliases(texts: Iterable[str], taken: Iterable[str]) -> dict[str, Route]:
    aliases: dict[str, Route] = {}
    for text in texts:
        path, route = _alias(text)
        if path in aliases:
            raise _refused(text, f"{path} is the path of another alias already")
        for root in taken:
            if f"{path}/".startswith(f"{root}/"):
                raise _refused(text, f"{root} is the path of a verb already")
        aliases[path] = route
    return aliases


def _alias(text: str) -> tuple[str, Route]:
    path, equals, target = text.rpartition("=")
    name, slash, plugin = target.partition("/")
    verb = _VERBS.get(name)
    if not equals or not _PATH.fullmatch(path.rstrip("/")):
        raise _refused(text, "PATH must be like /my-extender/image_score, whole and without query")
    if verb is None:
        near = suggestion(name, _VERBS) or f": known are {', '.join(_VERBS)}"
        raise _refused(text, f"there is no verb `{name}`{near}")
    if slash and (verb not in WITH_PLUGIN or not plugin or "/" in plugin):
        raise _refused(text, "PLUGIN must be one name, after filter or prioritize")
    return path.rstrip("/"), Route(verb, plugin)


def _refused(text: str, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f'--extender-alias is "{text}": {problem}; write PATH=VERB or PATH=VERB/PLUGIN, such as '
        "/my-extender/image_score=prioritize/ImageLocality"
    )
