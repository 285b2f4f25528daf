"""Answers `GET /policy`: the effective policy with its origin by line, and what plugins declare.

The origin is a line of the file, or a default. Both are YAML. The lines of the effective policy are
known by their paths, and most paths of it have a counterpart in the file: a plugin's arguments, or
where the plugin is enabled.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiohttp import web
from msgspec import to_builtins

from gateway.policy.policy import PolicyHolder
from gateway.replicas.reload import PolicyReloader
from moorage_host.policy import IN_TREE, KINDS, ConfiguredProfile, Document, ResolvedPolicy, Shadow
from moorage_host.policy.yaml_lines import read_tree


def policy_route(policy: PolicyHolder, reloader: PolicyReloader | None) -> web.RouteDef:
    """Return the route of the policy; *reloader* follows its file, if it has one."""

    async def show(_: web.Request) -> web.Response:
        document, resolved = policy.active()
        if resolved is None:
            return web.json_response({"error": policy.problem}, status=503)
        return web.json_response(
            {
                "source": resolved.source,
                "revision": resolved.revision,
                "note": (reloader.note() if reloader else None) or "",
                "fileHash": reloader.file_hash if reloader else "",
                "scoreScale": resolved.score_scale,
                "profiles": resolved.profile_names,
                "plugins": list(_plugins(resolved)),
                "warnings": resolved.warnings,
                "lines": [to_builtins(line) for line in lines_of(document, resolved)],
            }
        )

    return web.get("/policy", show)


def _plugins(resolved: ResolvedPolicy) -> Iterator[dict[str, Any]]:
    """Yield what each enabled plugin declares, once for each kind that it is enabled as."""
    for kind in KINDS:
        policy = resolved.policies[kind]
        live = {plugin.name for profile in policy.profiles for plugin in profile.plugins}
        for name in policy.plugins:
            if (info := resolved.catalogue.get(kind, name)) is not None:
                yield {
                    "name": name,
                    "kind": kind,
                    "onlyShadow": name not in live,
                    "points": sorted(info.points),
                    "readsPlacements": info.reads_placements,
                    "reads": [to_builtins(each) for each in info.reads],
                    "managedResources": info.managed_resources,
                }


_PATH = re.compile(r"profiles\[(?P<profile>\d+)\](?:\.(?P<rest>.+))?")
_ENABLED = re.compile(r"plugins\.(?P<kind>\w+)\.enabled\[(?P<index>\d+)\](?P<field>.*)")
_SHADOW = "shadow."
_CONFIG = re.compile(r"pluginConfig\[(?P<index>\d+)\]\.?(?P<field>.*)")


_Part = tuple[ConfiguredProfile | Shadow, str]
"""A profile or its shadow, and its path."""


class PolicyLine(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """A line of the effective policy; *line* is that of the file, 0 if it is none of it."""

    text: str
    origin: str
    line: int = 0


def lines_of(document: Document, resolved: ResolvedPolicy) -> list[PolicyLine]:
    """Return the effective policy line by line."""
    text, finder = resolved.to_yaml(), _Finder(document, resolved)
    paths = {line: path for path, line in read_tree(text, "effective").lines.items() if path}
    found: list[PolicyLine] = []
    path = ""
    for number, each in enumerate(text.splitlines(), start=1):
        path = paths.get(number, path)  # the rest of a long text belongs to the same path
        line, origin = finder.find(path)
        if not line and each.endswith(":"):
            origin = ""  # what it begins has origins of its own
        found.append(PolicyLine(text=each, line=line, origin=origin))
    return found


class _Finder:
    def __init__(self, document: Document, resolved: ResolvedPolicy) -> None:
        self._lines = document.tree.lines
        self._nearest = document.tree.line
        self._source = resolved.source
        self._profiles = document.configuration.profiles or (ConfiguredProfile(),)
        self._effective: dict[str, Any] = resolved.describe()

    def find(self, path: str) -> tuple[int, str]:
        """Return the line of the file, or 0, and the origin in words."""
        match = _PATH.match(path)
        if match is None or match["rest"] is None:
            return self._written(path)
        number = int(match["profile"])
        profile, effective = self._profiles[number], self._effective["profiles"][number]
        parts: list[_Part] = [(profile, f"profiles[{number}]")]
        rest = match["rest"]
        if profile.shadow is not None and rest.startswith(_SHADOW):
            # A shadow starts from what its profile has.
            rest, effective = rest.removeprefix(_SHADOW), effective["shadow"]
            parts.insert(0, (profile.shadow, f"profiles[{number}].shadow"))
        if enabled := _ENABLED.match(rest):
            kind = enabled["kind"]
            entry = effective["plugins"][kind]["enabled"][int(enabled["index"])]
            return self._enabled(parts, kind, entry["name"], enabled["field"])
        if config := _CONFIG.match(rest):
            name = effective["pluginConfig"][int(config["index"])]["name"]
            return self._configured(parts, name, config["field"])
        if ".disabled" in rest:
            return 0, "all of it is here"
        return self._written(path)

    def _enabled(self, parts: Sequence[_Part], kind: str, name: str, field: str) -> tuple[int, str]:
        for part, base in parts:
            for point, path in _enabling(part, kind, name):
                where = f"{base}.plugins.{path}"
                if field == ".weight" and f"{where}.weight" not in self._lines:
                    return 0, f"default of {name}"
                line, origin = self._written(where + field)
                return line, f"{origin}, by {IN_TREE}" if point == IN_TREE else origin
        return 0, "default"

    def _configured(self, parts: Sequence[_Part], name: str, field: str) -> tuple[int, str]:
        default = 0, f"default of {name}"
        for part, base in parts:
            names = [each.name for each in part.plugin_config]
            if name in names:
                where = f"{base}.pluginConfig[{names.index(name)}]"
                break
        else:
            return default
        if field in {"", "name", "args"}:
            return self._written(where)
        while field and f"{where}.{field}" not in self._lines:
            # An item of an array or object that is written out stands where that does.
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
        return default if field in {"", "args"} else self._written(f"{where}.{field}")

    def _written(self, path: str) -> tuple[int, str]:
        if path not in self._lines:
            return 0, "default"
        line = self._nearest(path)
        return line, f"{self._source.rpartition('/')[2]}:{line}"


def _enabling(part: ConfiguredProfile | Shadow, kind: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield where a plugin is enabled, what counts first: name or list, and path."""
    by_point = part.plugins.by_point
    for looked_for in (name, IN_TREE):
        for point, entries in ((kind, by_point[kind]), ("multiPoint", by_point["multiPoint"])):
            for index, each in enumerate(entries.enabled):
                if each.name == looked_for:
                    yield looked_for, f"{point}.enabled[{index}]"
