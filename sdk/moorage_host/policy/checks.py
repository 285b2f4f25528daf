"""Checks plain values against a msgspec Struct, or a JSON Schema, and lists every mistake.

msgspec itself stops at the first one and suggests nothing; it has the last word nevertheless, so
that bounds and `__post_init__` hold. Plugin arguments become their own `Args` where plugins are
built: by a replica, `moorage.testing`, the command line. The gateway has the document with its
lines, but not the code of plugins. So it finds what can be found by the JSON Schema that a service
announces (fields, types, bounds, choices); the replica has the last word.
"""

import enum
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Literal, TypeGuard, TypeVar

import msgspec

from moorage.errors import ConfigurationError, suggestion


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the path of the value in the document, and what is wrong with it."""

    path: str
    message: str


def merged(*steps: Iterable[Problem]) -> list[Problem]:
    """Return what several checks found, one after the other.

    What a later check finds where an earlier one found something is mostly its consequence: it is
    left out.
    """
    found: dict[Problem, None] = {}
    for step in steps:
        known = {problem.path for problem in found}
        found |= dict.fromkeys(problem for problem in step if problem.path not in known)
    return list(found)


def child(path: str, key: str | int) -> str:
    """Return the path of a value in an object or an array: `profiles[0].plugins`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def shown(value: object) -> str:
    """Return a value with its type, short: `str "abc"`, `int 5`, `array`."""
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False)
    return f"{type(value).__name__} {text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}"


_LONGEST = 60


StructT = TypeVar("StructT", bound=msgspec.Struct)

_MESSAGE = re.compile(r"(?P<text>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)


def find_problems(value: Any, kind: Any, path: str) -> list[Problem]:
    """Return what is wrong with a value that should be of a type.

    A Struct may carry `unknown_field_hints: ClassVar[Mapping[str, str]]`, which explains what to do
    about fields that people are likely to write; `Meta(title=...)` names what is expected.
    """
    return list(_parts(value, kind, path)) or list(_whole(value, kind, path))


def nulls_as_absent(value: Any, kind: Any) -> Any:
    """Return a value without the nulls that Go's decoder reads as "not given".

    That is a field of a Struct, and an item of an array, which is then empty. A null where no field
    is known stays, and is a mistake.
    """
    inner = _unwrapped(kind)
    if isinstance(value, dict) and _is_plain_struct(inner):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(inner)}
        return {
            key: nulls_as_absent(item, fields.get(key))
            for key, item in value.items()
            if item is not None or key not in fields
        }
    if isinstance(value, list) and _is_array(inner):
        of = typing.get_args(inner)[0]
        empty: Any = {} if _is_plain_struct(_unwrapped(of)) else ""
        return [empty if item is None else nulls_as_absent(item, of) for item in value]
    return value


def salvage(value: Any, kind: type[StructT]) -> StructT:
    """Return what is right of a value in which there are problems, to check the rest of it too.

    A field with a wrong value has its default. A text that must be there, and is not, is empty.
    """
    found: StructT = _salvaged(value, kind)
    return found


def _salvaged(value: Any, kind: Any) -> Any:
    inner = _unwrapped(kind)
    if _is_plain_struct(inner):
        return _salvaged_struct(value if isinstance(value, dict) else {}, inner)
    if isinstance(value, list) and _is_array(inner):
        items = (_salvaged(item, typing.get_args(inner)[0]) for item in value)
        return tuple("" if item is msgspec.UNSET else item for item in items)
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        return msgspec.UNSET


def _salvaged_struct(value: dict[str, Any], kind: type[msgspec.Struct]) -> msgspec.Struct:
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        found = _salvaged(value[name], field.type) if name in value else msgspec.UNSET
        if found is not msgspec.UNSET:
            parts[field.name] = found
        elif field.required:
            parts[field.name] = next(iter(_choices(_unwrapped(field.type))), "")
    return kind(**parts)


def _parts(value: Any, kind: Any, path: str) -> Iterator[Problem]:
    inner = _unwrapped(kind)
    arguments = typing.get_args(inner)
    if isinstance(value, dict) and _is_plain_struct(inner):
        yield from _fields(value, inner, path)
    elif isinstance(value, dict) and typing.get_origin(inner) is dict:
        for key, item in value.items():
            yield from find_problems(item, arguments[1], child(path, key))
    elif isinstance(value, list) and _is_array(inner):
        for index, item in enumerate(value):
            yield from find_problems(item, arguments[0], child(path, index))


def _fields(value: dict[str, Any], kind: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    hints = getattr(kind, "unknown_field_hints", {})
    for key, item in value.items():
        if key in fields:
            yield from find_problems(item, fields[key].type, child(path, key))
        elif kind.__struct_config__.forbid_unknown_fields:
            hint = f": {hints[key]}" if key in hints else suggestion(key, fields)
            yield Problem(child(path, key), f"unknown field `{key}`{hint or _known(fields)}")
    for name, field in fields.items():
        if field.required and name not in value:
            choices = _choices(_unwrapped(field.type))
            only = f": write `{name}: {choices[0]}`" if len(choices) == 1 else ""
            yield Problem(path, f"field `{name}` is missing{only}")


def _known(fields: dict[str, msgspec.structs.FieldInfo]) -> str:
    return f"; known: {', '.join(fields)}" if fields else "; none is known here"


def _whole(value: Any, kind: Any, path: str) -> Iterator[Problem]:
    choices = _choices(_unwrapped(kind))
    if choices and value not in choices:
        words = [choice for choice in choices if isinstance(choice, str)]
        near = suggestion(value, words) if isinstance(value, str) else ""
        expected = " or ".join(shown(choice).partition(" ")[2] for choice in choices)
        yield Problem(path, f"expected {expected}, got {shown(value)}{near}")
        return
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        match = _MESSAGE.fullmatch(str(error))
        text, inner = (match["text"], match["path"] or "") if match else (str(error), "")
        yield Problem(path + inner, text if inner else _reworded(text, kind, value))


def _reworded(text: str, kind: Any, value: Any) -> str:
    """Describe the value that came instead of the expected one."""
    if not text.startswith("Expected"):
        return text
    expected = _title(kind) or text.partition(", got")[0].removeprefix("Expected ")
    return f"expected {expected.replace('`', '')}, got {shown(value)}"


def _title(kind: Any) -> str:
    metas = [m for m in getattr(kind, "__metadata__", ()) if isinstance(m, msgspec.Meta)]
    return next((meta.title for meta in metas if meta.title), "")


def _unwrapped(kind: Any) -> Any:
    """Strip Annotated and `| None`."""
    if typing.get_origin(kind) is Annotated:
        return _unwrapped(typing.get_args(kind)[0])
    if typing.get_origin(kind) in {types.UnionType, typing.Union}:
        others = [option for option in typing.get_args(kind) if option is not types.NoneType]
        return _unwrapped(others[0]) if len(others) == 1 else kind
    return kind


def _choices(kind: Any) -> tuple[Any, ...]:
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(member.value for member in kind)
    return ()


def _is_plain_struct(kind: Any) -> TypeGuard[type[msgspec.Struct]]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return kind.__struct_config__.tag is None and not kind.__struct_config__.array_like


def _is_array(kind: Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return len(arguments) == 2 and arguments[1] is Ellipsis
    return origin in {list, set, frozenset}


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
        return Literal[tuple(map(_integer, schema["enum"]))]
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
    bounds = {word: _integer(schema[name]) for name, word in _BOUNDS.items() if name in schema}
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


def _integer(value: Any) -> Any:
    """Return a number that came as a float, as protobuf has all numbers, as an integer again."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
