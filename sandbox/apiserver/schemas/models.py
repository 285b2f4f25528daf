"""The schemas of built-in kinds, read from the models of kubernetes_asyncio.

The models are generated from Kubernetes' own OpenAPI document. Importing them takes a second and
110 MB, so their source is read instead: each file has two dicts, the types and the JSON names of
its fields, and describes each field in a docstring.
"""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
"""An OpenAPI schema; references lead to components of this module."""

REFERENCE = "#/components/schemas/"
_REFERENCES: dict[str, str] = {}
"""The references that this module made, and the types they mean; definitions may have others."""


def _reference(name: str) -> Schema:
    _REFERENCES[REFERENCE + name] = name
    return {"$ref": REFERENCE + name}


METADATA = _reference("v1.ObjectMeta")
_MICRO_TIMES = {"event_time", "last_observed_time", "acquire_time", "renew_time"}
_QUANTITIES = {
    "allocatable", "allocated_resources", "capacity", "default", "default_request", "divisor",
    "hard", "limits", "max", "max_limit_request_ratio", "min", "overhead", "pod_fixed",
    "requests", "size_limit", "used",
}  # fmt: skip
"""Fields of type Quantity, which are texts in the models."""

_QUANTITY = _reference("resource.Quantity")
_PLAIN: Mapping[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {},
}
_OWN: Mapping[str, Schema] = {
    "resource.Quantity": {
        "description": "A quantity, such as 500m, 2 or 1Gi.",
        "x-kubernetes-int-or-string": True,
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    "v1.MicroTime": {
        "description": "A time with six digits of a second.",
        "type": "string",
        "format": "date-time",
        "pattern": r"\.\d{6}(Z|[+-]\d\d:\d\d)$",
    },
}
_CLASS = re.compile(r"([A-Z][a-z]+(?=V\d))?(V\d+(?:(?:alpha|beta)\d+)?)(.+)")
_DESCRIBED = re.compile(
    r'"""Gets the (\w+) of this \w+\.  # noqa: E501\n\n +(.+)  # noqa: E501\n\n +:return'
)
_NEEDED = re.compile(r"client_side_validation and (\w+) is None")


@lru_cache(maxsize=1024)
def built_in(api_version: str, kind: str) -> Schema | None:
    """Return a reference to the schema of a kind, None if the client does not know it."""
    group, _, version = api_version.rpartition("/")
    prefix = (group.partition(".")[0] or "core").capitalize()
    for name in (f"{version}.{kind}", f"{prefix.lower()}.{version}.{kind}"):
        if _path(name).exists():
            return _reference(name)
    return None


def resolve(schema: Schema) -> Schema:
    """Return the schema that a reference leads to; any other schema is returned as it is."""
    name = name_of(schema.get("$ref"))
    return component(name) if name else schema


def name_of(reference: object) -> str:
    """Return the name of the type that a reference of this module means; empty for any other."""
    return _REFERENCES.get(reference, "") if isinstance(reference, str) else ""


@lru_cache(maxsize=1024)
def component(name: str) -> Schema:
    """Return the schema of one type, such as v1.PodSpec; its fields are not described."""
    if name in _OWN:
        return _OWN[name]
    source = _path(name).read_text(encoding="utf-8")
    types, names = _dict(source, "openapi_types"), _dict(source, "attribute_map")
    return {
        "type": "object",
        "properties": {names[field]: _schema(field, text) for field, text in types.items()},
        "required": [names[field] for field in dict.fromkeys(_NEEDED.findall(source))],
    }


def described(name: str) -> Schema:
    """Return the schema of one type with the descriptions of its fields, if they are no objects."""
    schema = component(name)
    if name in _OWN:
        return schema
    source = _path(name).read_text(encoding="utf-8")
    names = _dict(source, "attribute_map")
    texts = {names[field]: text for field, text in _DESCRIBED.findall(source)}
    properties = {
        key: {**each, "description": texts[key]} if key in texts else each
        for key, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _path(name: str) -> Path:
    """Return the file of a type: core.v1.Event is CoreV1Event in core_v1_event.py."""
    *versions, kind = name.split(".")
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", kind)
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()
    return _folder() / f"{'_'.join((*versions, words))}.py"


@lru_cache(maxsize=1)
def _folder() -> Path:
    package = find_spec("kubernetes_asyncio")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("kubernetes_asyncio is not installed: run pip install again")
    return Path(package.submodule_search_locations[0], "client", "models")


def _dict(source: str, name: str) -> dict[str, str]:
    start = source.index(f"{name} = ") + len(name) + 3
    value: dict[str, str] = ast.literal_eval(source[start : source.index("}", start) + 1])
    return value


def _schema(field: str, text: str) -> Schema:
    if text.startswith("list["):
        return {"type": "array", "items": _schema(field, text[5:-1])}
    if text.startswith("dict("):
        return {"type": "object", "additionalProperties": _schema(field, text[10:-1])}
    if text == "str" and field in _QUANTITIES:
        return _QUANTITY
    if text == "datetime" and field in _MICRO_TIMES:
        return _reference("v1.MicroTime")
    if text in _PLAIN:
        return _PLAIN[text]
    match = _CLASS.fullmatch(text)
    if match is None:
        return {}
    group, version, kind = match.groups()
    parts = [part.lower() for part in (group, version) if part]
    return _reference(".".join((*parts, kind)))
