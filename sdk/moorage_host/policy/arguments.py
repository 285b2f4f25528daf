"""Checks the arguments that a policy gives to a plugin, and turns them into its own `Args`.

The latter where plugins are built: by a replica, `moorage.testing`, the command line. The gateway
has the document with its lines, but not the plugin's code. So it finds what can be found by the
JSON Schema that a service announces (fields, types, bounds, choices); the replica has the last
word.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from moorage.errors import ConfigurationError, suggestion
from moorage_host.policy.checks import find_problems
from moorage_host.policy.problems import Problem, child, shown

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)
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


def argument_problems(
    args: Mapping[str, Any], args_type: type[msgspec.Struct], path: str
) -> list[Problem]:
    """Return what is wrong with the arguments of a plugin, whose class declares *args_type*."""
    try:
        return find_problems(args, args_type, path)
    except Exception as error:  # noqa: BLE001 - the author's __post_init__, or types msgspec lacks
        return [Problem(path, f"{type(error).__name__}: {error}")]


def check_arguments(args: Mapping[str, Any], args_type: type[ArgsT], path: str) -> ArgsT:
    """Return the arguments as an instance of a plugin's `Args`.

    Args:
        args: An object as it comes from YAML or JSON, its fields named as they are written there.
        args_type: The Struct that declares types, defaults and bounds.
        path: Where the object stands, for messages.

    Raises:
        ConfigurationError: One line for each mistake, with its path and the nearest known field.
    """
    try:
        problems = find_problems(args, args_type, path)
        if not problems:
            return msgspec.convert(args, args_type, strict=True)
    except Exception as error:
        # The author's own __post_init__, or a type that msgspec does not know.
        raise ConfigurationError(f"{path}: {type(error).__name__}: {error}") from error
    raise ConfigurationError("\n".join(f"{p.path}: {p.message}" for p in problems))


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
