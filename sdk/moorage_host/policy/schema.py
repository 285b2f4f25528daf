"""Checks arguments against the JSON Schema that a service announces for a plugin.

The gateway has the document with its lines, but not the plugin's code. So it finds here what can be
found by schema (fields, types, bounds, choices); the replica has the last word (`check_arguments`).
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moorage.errors import suggestion
from moorage_host.policy.problems import Problem, child, shown

Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.ge),
    ("exclusiveMinimum", "above", operator.gt),
    ("maximum", "at most", operator.le),
    ("exclusiveMaximum", "below", operator.lt),
)


def schema_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a value; unknown keywords of the schema are ignored."""
    return _problems(value, schema, path, schema.get("$defs", {}))


def _problems(value: Any, schema: Schema, path: str, definitions: Schema) -> Iterator[Problem]:
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    if reference in definitions:
        schema = definitions[reference]
    if "enum" in schema and value not in schema["enum"]:
        expected = " or ".join(shown(choice).partition(" ")[2] for choice in schema["enum"])
        yield Problem(path, f"expected {expected}, got {shown(value)}")
    elif not _has_type(value, schema.get("type")):
        yield Problem(path, f"expected {schema['type']}, got {shown(value)}")
    elif isinstance(value, dict):
        yield from _fields(value, schema, path, definitions)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from _problems(item, schema["items"], child(path, index), definitions)
    elif isinstance(value, int | float):
        yield from _bounds(value, schema, path)


def _fields(
    value: Mapping[str, Any], schema: Schema, path: str, definitions: Schema
) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for key, item in value.items():
        if key in properties:
            yield from _problems(item, properties[key], child(path, key), definitions)
        elif others is False:
            known = f"; known: {', '.join(properties)}" if properties else "; none is known here"
            near = suggestion(key, properties)
            yield Problem(child(path, key), f"unknown field `{key}`{near or known}")
        elif isinstance(others, Mapping):
            yield from _problems(item, others, child(path, key), definitions)
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(path, f"field `{name}` is missing")


def _bounds(value: float, schema: Schema, path: str) -> Iterator[Problem]:
    for keyword, words, holds in _BOUNDS:
        if keyword in schema and not holds(value, schema[keyword]):
            bound = f"{schema[keyword]:g}"
            yield Problem(path, f"expected {schema['type']} {words} {bound}, got {shown(value)}")


def _has_type(value: Any, name: Any) -> bool:
    if not isinstance(name, str) or name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])
