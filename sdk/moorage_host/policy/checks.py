"""Checks plain values against a msgspec Struct and lists every mistake, not only the first.

msgspec itself stops at the first one and suggests nothing; it has the last word nevertheless, so
that bounds and `__post_init__` hold. Called by `document` and `arguments`.
"""

import enum
import re
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeGuard, TypeVar

import msgspec

from moorage.errors import suggestion
from moorage_host.policy.problems import Problem, child, shown

StructT = TypeVar("StructT", bound=msgspec.Struct)

_MESSAGE = re.compile(r"(?P<text>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)


def find_problems(value: Any, kind: Any, path: str) -> list[Problem]:
    """Return what is wrong with a value that should be of a type.

    A Struct may carry `unknown_field_hints: ClassVar[Mapping[str, str]]`, which explains what to do
    about fields that people are likely to write; `Meta(title=...)` names what is expected.
    """
    return list(_parts(value, kind, path)) or list(_whole(value, kind, path))


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
        return tuple(_salvaged(item, typing.get_args(inner)[0]) for item in value)
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
