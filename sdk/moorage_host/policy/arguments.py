"""Checks the arguments that a policy gives to a plugin, and turns them into its own `Args`.

The latter where plugins are built: by a replica, `moorage.testing`, the command line. The gateway
has the document with its lines, but not the plugin's code. So it finds what can be found by the
JSON Schema that a service announces (fields, types, bounds, choices); the replica has the last
word.
"""

from collections.abc import Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from moorage.errors import ConfigurationError
from moorage_host.policy.checks import find_problems
from moorage_host.policy.problems import Problem

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)
Schema = Mapping[str, Any]

_PLAIN: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_BOUNDS: Mapping[str, str] = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
}


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


def schema_problems(value: Any, schema: Schema, path: str) -> Iterable[Problem]:
    """Return what is wrong with a value; what is beyond us in the schema is left to the replica."""
    try:
        return find_problems(value, _type_of(schema, schema.get("$defs", {})), path)
    except (TypeError, ValueError, OverflowError):  # a type or a bound that msgspec lacks
        return ()


def _type_of(schema: Schema, definitions: Schema) -> Any:
    """Return the type that a schema describes, as far as msgspec knows it."""
    if reference := schema.get("$ref", "").removeprefix("#/$defs/"):
        # Without itself: a type within itself is not checked.
        others = {name: each for name, each in definitions.items() if name != reference}
        return _type_of(definitions.get(reference, {}), others)
    if "enum" in schema:
        return Literal[tuple(map(_whole, schema["enum"]))]
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) == 1:
        return _type_of(options[0], definitions) | None
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return _struct(schema, definitions)
    if kind in ("object", "array"):
        inner = schema.get("additionalProperties" if kind == "object" else "items")
        of = _type_of(inner, definitions) if isinstance(inner, Mapping) else Any
        return GenericAlias(dict, (str, of)) if kind == "object" else GenericAlias(list, (of,))
    if not isinstance(kind, str) or kind not in _PLAIN:
        return Any
    bounds = {word: _whole(schema[name]) for name, word in _BOUNDS.items() if name in schema}
    return Annotated[_PLAIN[kind], msgspec.Meta(**bounds)] if bounds else _PLAIN[kind]


def _struct(schema: Schema, definitions: Schema) -> type[msgspec.Struct]:
    names = {f"field_{number}": name for number, name in enumerate(schema["properties"])}
    fields: list[Any] = [
        (field, kind) if name in schema.get("required", ()) else (field, kind, None)
        for field, name in names.items()
        for kind in (_type_of(schema["properties"][name], definitions),)
    ]
    return msgspec.defstruct(
        schema.get("title", "Args"),
        fields,
        kw_only=True,
        rename=names,
        forbid_unknown_fields=schema.get("additionalProperties") is False,
    )


def _whole(value: Any) -> Any:
    """Return a number that came as a float, as protobuf has all numbers, as an integer again."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
