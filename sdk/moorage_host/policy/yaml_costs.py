"""What YAML and JSON of others may cost: bytes, values, levels, before anything is composed.

PyYAML has no limits: aliases multiply, and deep nesting ends the process by a recursion in C. So
every text passes `check_costs` first, which looks at one event of the parser after another.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from moorage.errors import ConfigurationError

MAX_VALUES = 100_000
MAX_DEPTH = 64
MAX_YAML = 1 << 25
"""Bytes of YAML in `load_all`: PyYAML reads one or two million a second."""
MAX_FILE = 1 << 29
"""Bytes of JSON in `load_all`: a dump of 100,000 pods."""
_HEAD = 1 << 12

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_all(text: str, source: str) -> list[Any]:
    """Return the documents of a YAML or JSON text that others' programs read, as PyYAML does.

    Raises:
        ConfigurationError: It is neither, larger than the limits, or has a key twice.
    """
    try:
        # The YAML parser reads JSON too, but a large dump would take it minutes.
        if text.lstrip().startswith("{") and "\n---" not in text:
            return [json.loads(text, object_pairs_hook=_unique)]
        if len(text) > MAX_YAML:
            raise ConfigurationError(_too_large(source, is_json=False))
        check_costs(text, source, unique=True)
        return list(yaml.load_all(text, LOADER))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{source}:{error.lineno}: not JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(f"{source}{line}: not YAML: {error.problem}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{source}: nested too deep") from error
    except (ValueError, yaml.YAMLError) as error:
        shown = " ".join(str(error).split())
        raise ConfigurationError(f"{source}: neither YAML nor JSON: {shown}") from error


def read_text(path: Path) -> str:
    """Return the text of a file for `load_all`; no more is read than that takes.

    Raises:
        ConfigurationError: It cannot be read, or is larger than MAX_FILE, or MAX_YAML.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(_HEAD)
            is_json = begin.lstrip().startswith(b"{")
            limit = MAX_FILE if is_json else MAX_YAML
            data = begin + file.read(limit + 1 - len(begin))
        if len(data) > limit:
            raise ConfigurationError(_too_large(str(path), is_json=is_json))
        return data.decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: neither YAML nor JSON: it is not UTF-8") from error


def _too_large(source: str, *, is_json: bool) -> str:
    if is_json:
        return f"{source}: larger than {MAX_FILE >> 20} MiB"
    advice = "write it as JSON (`kubectl get ... -o json`)"
    return f"{source}: larger than {MAX_YAML >> 20} MiB of YAML; {advice}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice} is there twice")
    return found


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet.

    Attributes:
        anchor: What aliases call it.
        keys: Of a mapping those so far; None for a sequence.
        items: Keys and values so far.
        size: Values in it, those of aliases too.
    """

    anchor: str | None = None
    keys: set[str] | None = None
    items: int = 0
    size: int = 0


def check_costs(text: str, source: str, *, only_first: bool = False, unique: bool = False) -> None:
    """Refuse what would cost too much before YAML is composed: a recursion in C ends the process.

    Args:
        text: The text.
        source: What to call it in messages.
        only_first: Whether documents after the first are not looked at.
        unique: Whether a mapping with a key twice is refused too.

    Raises:
        ConfigurationError: A document is nested too deep, its aliases make too many values, or an
            alias stands within what it names.
        yaml.YAMLError: It is not YAML.
    """
    stack, sizes, aliased = [_Open()], dict[str, int](), 0
    for event in yaml.parse(text, LOADER):
        parent, size = stack[-1], 1
        if isinstance(event, yaml.CollectionStartEvent):
            is_map = isinstance(event, yaml.MappingStartEvent)
            stack.append(_Open(event.anchor, set() if is_map else None))
            if len(stack) > MAX_DEPTH + 1:
                raise ConfigurationError(
                    f"{source}:{line_of(event)}: nested more than {MAX_DEPTH} levels deep"
                )
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            ended = stack.pop()
            parent, size = stack[-1], ended.size + 1
            if ended.anchor:
                sizes[ended.anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            if any(each.anchor == event.anchor for each in stack):
                raise ConfigurationError(
                    f"{source}:{line_of(event)}: the alias *{event.anchor} is within what it names"
                )
            aliased += (size := sizes.get(event.anchor or "", 1))
            if aliased > MAX_VALUES:
                raise ConfigurationError(
                    f"{source}:{line_of(event)}: aliases make more than {MAX_VALUES} values"
                )
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                sizes[event.anchor] = 1
            if unique and parent.keys is not None and parent.items % 2 == 0:
                if event.value in parent.keys and event.value != "<<":
                    raise ConfigurationError(
                        f"{source}:{line_of(event)}: the key {event.value} is there twice"
                    )
                parent.keys.add(event.value)
        elif only_first and isinstance(event, yaml.DocumentEndEvent):
            return
        else:
            continue
        parent.items += 1
        parent.size += size


def line_of(part: yaml.Node | yaml.Event) -> int:
    """Return the line of a node or an event, from 1."""
    return int(part.start_mark.line) + 1 if part.start_mark else 1
