"""Further paths for the extender's verbs: `--extender-alias PATH=VERB/PLUGIN`.

An extender that Moorage replaces had paths of its own; with an alias kube-scheduler's configuration
may stay as it is. Called by `gateway.edge.app`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from gateway.edge.metrics import Verb
from moorage.errors import ConfigurationError, suggestion

WITH_PLUGIN: frozenset[Verb] = frozenset({"filter", "prioritize"})
"""The verbs that one plugin alone can answer."""

_VERBS: Mapping[str, Verb] = {verb: verb for verb in get_args(Verb)}
_PATH = re.compile(r"(/[\w.~!$&'()*+;:@-]+)+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A path, without a slash at its end, and what answers there; "" is every plugin."""

    path: str
    verb: Verb
    plugin: str


def verb_path(prefix: str, verb: Verb) -> str:
    """Return where a verb is without any alias."""
    return f"/{prefix.strip('/')}/{verb}".replace("//", "/")


def read_aliases(texts: Iterable[str], prefix: str) -> list[Alias]:
    """Read aliases as they are written in settings.

    Args:
        texts: What is written.
        prefix: The path before the verbs.

    Raises:
        ConfigurationError: One is not PATH=VERB or PATH=VERB/PLUGIN, or its path is taken.
    """
    aliases: dict[str, Alias] = {}
    roots = [verb_path(prefix, verb) for verb in _VERBS.values()]
    for text in texts:
        alias = _alias(text)
        if alias.path in aliases:
            raise _refused(text, f"{alias.path} is the path of another alias already")
        for root in roots:
            if f"{alias.path}/".startswith(f"{root}/"):
                raise _refused(text, f"{root} is the path of a verb already")
        aliases[alias.path] = alias
    return list(aliases.values())


def _alias(text: str) -> Alias:
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
    return Alias(path=path.rstrip("/"), verb=verb, plugin=plugin)


def _refused(text: str, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f'--extender-alias is "{text}": {problem}; write PATH=VERB or PATH=VERB/PLUGIN, such as '
        "/my-extender/image_score=prioritize/ImageLocality"
    )
