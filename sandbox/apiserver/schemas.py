"""The fields of the kinds of Kubernetes, and how they are checked.

kubernetes.json has the definitions of Kubernetes' OpenAPI document for the kinds that are served;
tools/kubernetes_schemas.py takes them from a release. The check is written here because clients see
its words, which are those of Kubernetes, and because every write waits for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from sandbox.apiserver.errors import Cause, invalid_value, required

Schema: TypeAlias = Mapping[str, Any]
"""An OpenAPI schema; references lead to `definitions`."""

FILE: Final = Path(__file__).with_name("kubernetes.json")
REFERENCE: Final = "#/definitions/"
KIND: Final = "x-kubernetes-group-version-kind"
ANYTHING: Final = "x-kubernetes-preserve-unknown-fields"
EITHER: Final = "x-kubernetes-int-or-string"

_MACHINERY = "io.k8s.apimachinery.pkg."
METADATA: Final[Schema] = {"$ref": f"{REFERENCE}{_MACHINERY}apis.meta.v1.ObjectMeta"}

_NUMBER_OR_TEXT = (f"{_MACHINERY}api.resource.Quantity", f"{_MACHINERY}util.intstr.IntOrString")
_MICRO_TIME = f"{_MACHINERY}apis.meta.v1.MicroTime"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d%s(Z|[+-]\d\d:\d\d)"
_TIMES = {
    "date-time": re.compile(_TIME % r"(\.\d+)?"),
    "micro-time": re.compile(_TIME % r"\.\d{6}"),
}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}


@lru_cache(maxsize=1)
def definitions() -> Mapping[str, dict[str, Any]]:
    """Return Kubernetes' types by name."""
    found: dict[str, dict[str, Any]] = msgspec.json.decode(FILE.read_bytes())
    for schema in found.values():
        if "properties" not in schema and schema.get("type") == "object":
            schema[ANYTHING] = True  # an object of any other kind
    for name in _NUMBER_OR_TEXT:
        found[name] = {EITHER: True}
    found[_MICRO_TIME]["format"] = "micro-time"
    return found


@lru_cache(maxsize=1)
def _kinds() -> Mapping[tuple[str, str], Schema]:
    return {
        (f"{kind['group']}/{kind['version']}".removeprefix("/"), kind["kind"]): {
            "$ref": REFERENCE + name
        }
        for name, schema in definitions().items()
        for kind in schema.get(KIND, ())
    }


def built_in(api_version: str, kind: str) -> Schema | None:
    """Return a reference to the published schema of a kind, None if there is none."""
    return _kinds().get((api_version, kind))


@dataclass(slots=True, kw_only=True)
class Examination:
    """What was found in one object.

    Attributes:
        complete: Whether fields that the schema requires must be there.
        unknown: The paths of fields that the schema does not have.
        causes: The fields with a wrong value.
    """

    complete: bool
    unknown: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)

    def examine(self, schema: Schema, value: Any, path: str = "") -> None:
        """Compare a value, and everything in it, with a schema."""
        if isinstance(name := schema.get("$ref"), str):
            schema = definitions()[name.removeprefix(REFERENCE)]
        cause = _problem(schema, value, path)
        if cause:
            self.causes.append(cause)
        elif isinstance(value, dict):
            self._fields(schema, value, path)
        elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
            for index, each in enumerate(value):
                self.examine(items, each, f"{path}[{index}]")

    def _fields(self, schema: Schema, obj: Mapping[str, Any], path: str) -> None:
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        free = schema.get(ANYTHING) or others is True or "type" not in schema
        prefix = f"{path}." if path else ""
        for key, each in obj.items():
            if key in known:
                self.examine(known[key], each, prefix + key)
            elif isinstance(others, dict):
                self.examine(others, each, prefix + key)
            elif not free:
                self.unknown.append(prefix + key)
        for key in schema.get("required", ()) if self.complete else ():
            if key not in obj:
                self.causes.append(required(prefix + key))


def _problem(schema: Schema, value: Any, path: str) -> Cause | None:
    name, expected = _TYPES.get(type(value), "array"), schema.get("type", "")
    if schema.get(EITHER):
        expected = "" if name in ("string", "integer", "number") else "integer or string"
    if expected == "number" and name == "integer":
        expected = name
    if expected not in ("", name):
        return invalid_value(path, name, f'{path} in body must be of type {expected}: "{name}"')
    form = _TIMES.get(schema.get("format", ""))
    if form and not form.fullmatch(value):
        return invalid_value(path, value, "must be a time such as 2026-01-01T00:00:00Z")
    return None
