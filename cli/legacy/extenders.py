"""The extenders of a Policy, field by field: what is unknown is left out, with its line and why."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from moorage.errors import suggestion
from moorage.units.durations import format_duration
from moorage_host.kube_scheduler import ExtenderTLS, ManagedResource
from moorage_host.kube_scheduler.configuration.parts import ConfigurationPart, Int64
from moorage_host.policy.checks import Problem, child, find_problems, merged, salvage

Object = dict[str, Any]

Note = tuple[str, str]
"""A path in the Policy, and what was done there."""


class LegacyExtender(ConfigurationPart, frozen=True):
    """An extender as a Policy has it; its httpTimeout is in nanoseconds."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = False
    enable_https_as_today: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: Annotated[Int64 | str, Meta(title="nanoseconds, an integer")] = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


def known_fields(value: Any, kind: type[msgspec.Struct], path: str) -> tuple[Any, list[Note]]:
    """Return an object without the fields that are unknown, and a note for each."""
    if not isinstance(value, dict):
        return value, []
    known = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    kept: Object = {}
    notes: list[Note] = []
    for key, item in value.items():
        inner = child(path, key)
        if key not in known:
            near = suggestion(key, known)
            notes.append((inner, f"left out: kube-scheduler has no field `{key}` here{near}"))
        elif item is not None:
            kept[key], more = _known_inside(key, item, inner)
            notes += more
    return kept, notes


def _known_inside(key: str, item: Any, path: str) -> tuple[Any, list[Note]]:
    if key == "tlsConfig":
        return known_fields(item, ExtenderTLS, path)
    if key == "managedResources" and isinstance(item, list):
        parts = [known_fields(each, ManagedResource, child(path, i)) for i, each in enumerate(item)]
        return [kept for kept, _ in parts], [note for _, notes in parts for note in notes]
    return item, []


def extender_problems(extenders: tuple[Object, ...]) -> list[Problem]:
    """Return what kube-scheduler did not start with: wrong types, and weights that are missing.

    Fields that are unknown are no mistake by themselves; beside one they are listed too.
    """
    found: list[Problem] = []
    unknown: list[Note] = []
    for index, given in enumerate(extenders):
        path = child("extenders", index)
        kept, notes = known_fields(given, LegacyExtender, path)
        unknown += notes
        found += find_problems(kept, LegacyExtender, path)
        read = salvage(kept, LegacyExtender)
        if read.prioritize_verb and read.weight <= 0:
            found.append(Problem(f"{path}.weight", "must be positive where prioritizeVerb is set"))
    return merged(found, (Problem(*note) for note in unknown)) if found else []


def translated(given: Object, path: str, *, is_counted: bool) -> tuple[Object, list[Note]]:
    """Return an extender as it is written today, and what was changed.

    Args:
        given: The extender; its types are right.
        path: Where it stands.
        is_counted: Whether NodeResourcesFit runs, which counts resources.
    """
    kept, notes = known_fields(given, LegacyExtender, path)
    result = {name: value for name, value in kept.items() if value}
    if "enableHttps" in kept:
        https = result.pop("enableHttps", False)
        result |= {"enableHTTPS": True} if https else {}
        notes.append((f"{path}.enableHttps", "is spelt enableHTTPS now"))
    if isinstance(timeout := result.get("httpTimeout"), int):
        result["httpTimeout"] = format_duration(timeout / 1e9)
        text = f"nanoseconds became a duration: {result['httpTimeout']}"
        notes.append((f"{path}.httpTimeout", text))
    if result.get("filterVerb") and not result.get("nodeCacheCapable"):
        text = "with a filterVerb, kube-scheduler 1.33 and later then scores every node as empty"
        notes.append((path, f"nodeCacheCapable is false: {text} (kubernetes/kubernetes#141781)"))
    managed = result.get("managedResources", ())
    if not is_counted and any(each.get("ignoredByScheduler") for each in managed):
        # kube-scheduler would not start: it looks for the arguments of NodeResourcesFit.
        result["managedResources"] = [{"name": each.get("name")} for each in managed]
        text = "ignoredByScheduler dropped: NodeResourcesFit, which counts resources, does not run"
        notes.append((f"{path}.managedResources", text))
    return result, notes
