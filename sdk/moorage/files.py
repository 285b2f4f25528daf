"""Reads YAML and JSON files of others within limits: bytes, values, levels, no key twice.

Libraries have no limits: aliases of YAML multiply, deep nesting ends the process by a recursion in
C, objects in memory are ten times as large as their text. So YAML passes `check_costs` before it is
composed, one event of the parser after another. A long list in JSON is decoded one item at a time,
and twice: no item is kept before all were looked at, so a broken file costs what its longest item
does. A file that is right may be large, and costs memory in proportion.
"""

import json
import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TextIO

import yaml

from moorage.errors import ConfigurationError

MAX_VALUES = 250_000
"""Values in a YAML file, and in an object of a JSON file: PyYAML takes four seconds for them."""
MAX_DEPTH = 64
MAX_YAML = 1 << 24
"""Bytes of a YAML file."""
MAX_OBJECT = 1 << 22
"""Characters of an object of a JSON file; an API server takes 1.5 million, without indents."""
MAX_FILE = 1 << 29
"""Bytes of a JSON file: a dump of 100,000 pods."""
_BLOCK = 1 << 20

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_all(path: Path, *, most: int = MAX_VALUES, longest: int = MAX_OBJECT) -> Iterator[Any]:
    """Yield the documents of a YAML or JSON file that others' programs read, as PyYAML does.

    Of a list in JSON that is longer than an object may be, `items` is an iterator, good for once.

    Args:
        path: The file; a pipe is copied into a temporary file first.
        most: Values in YAML, or in an object of JSON.
        longest: Bytes in the file; of YAML at most `MAX_YAML`.

    Raises:
        ConfigurationError: It cannot be read, is neither, is beyond a limit, or has a key twice.
    """
    with _reporting(path), _opened(path, longest) as file:
        text = file.read(MAX_OBJECT + 1)
        # The YAML parser reads JSON too, but a large dump would take it minutes.
        if _JSON.match(text) and "\n---" not in text:
            if len(text) > MAX_OBJECT:
                yield _long_list(file, path, most)
                return
            json_text = _JsonText(file, most)
            documents = []
            while json_text.next():
                documents.append(json_text.value())
            yield from documents
            return
        text += file.read(MAX_YAML + 1 - len(text))
        if len(text) > MAX_YAML:
            raise ValueError(f"larger than {MAX_YAML >> 20} MiB of YAML; {_AS_JSON}")
        check_costs(text, str(path), most=most, unique=True)
        yield from yaml.load_all(text, LOADER)


_JSON = re.compile(r"\s*\{\s*[\"}]")
_AS_JSON = "write it as JSON (`kubectl get ... -o json`)"


def load_kubeconfig(path: Path) -> list[Any]:
    """Return the documents of a kubeconfig, which the Kubernetes library reads without limits.

    That is written in Python: it takes ten thousand values a second.

    Raises:
        ConfigurationError: As `load_all`, with lower limits.
    """
    return list(load_all(path, most=20_000))


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Have what is wrong with a file reported with its name, and the line where it is known."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: neither YAML nor JSON: it is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(f"{path}{line}: not YAML: {error.problem}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path}: {_TOO_DEEP}") from error
    except yaml.YAMLError as error:
        shown = " ".join(str(error).split())
        raise ConfigurationError(f"{path}: neither YAML nor JSON: {shown}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except (ArithmeticError, LookupError, TypeError) as error:  # PyYAML lets these through
        raise ConfigurationError(f"{path}: not YAML: {error!r}") from error


@contextmanager
def _opened(path: Path, longest: int) -> Iterator[TextIO]:
    """Open a file so that it can be read twice."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        if not file.seekable():
            pipe, file = file, stack.enter_context(TemporaryFile())
            left = longest + 1
            while left > 0 and (block := pipe.read(min(left, _BLOCK))):
                left -= file.write(block)
        if file.seek(0, os.SEEK_END) > longest:
            raise ValueError(f"larger than {longest >> 20} MiB")
        file.seek(0)
        # Windows' PowerShell writes what kubectl prints in UTF-16.
        encoding = "utf-16" if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig"
        file.seek(0)
        yield stack.enter_context(TextIOWrapper(file, encoding=encoding, newline=""))


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def _long_list(file: TextIO, path: Path, most: int) -> dict[str, Any]:
    """Return a list after all of it was looked at; its items are read once more, one by one."""
    found = {key: value for key, value in _fields(file, most) if key in ("apiVersion", "kind")}
    if not str(found.get("kind")).endswith("List"):
        raise ValueError(_TOO_LONG)

    def items() -> Iterator[Any]:
        with _reporting(path):
            yield from (value for key, value in _fields(file, most) if key == "items")

    return found | {"items": items()}


def _fields(file: TextIO, most: int) -> Iterator[tuple[str, Any]]:
    """Yield the fields of the object in a file; `items` for each item."""
    text, once = _JsonText(file, most), {"apiVersion", "kind", "items"}
    mark = text.take("{")
    while mark != "}":
        key = str(text.value())
        text.take(":")
        if key in ("apiVersion", "kind", "items"):
            if key not in once:
                raise ValueError(_twice(key))
            once.remove(key)
        if key == "items" and text.next() == "[":
            text.take("[")
            more = text.take("]") if text.next() == "]" else ","
            while more == ",":
                yield key, text.value()
                more = text.take(",]")
        else:
            yield key, text.value()
        mark = text.take(",}")
    text.take("")


class _JsonText:
    """The text of a JSON file, of which little more than an object is in memory."""

    def __init__(self, file: TextIO, most: int) -> None:
        file.seek(0)
        self._file, self._most = file, most
        self._text, self._at, self._lines, self._ended = "", 0, 0, False

    def next(self) -> str:
        """Return the next character that is no white space, "" at the end."""
        while True:
            self._read_ahead()
            if found := _NO_SPACE.search(self._text, self._at):
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if self._ended:
                return ""

    def take(self, marks: str) -> str:
        """Pass one of *marks*, or the end if there is none, and return it."""
        mark = self.next()
        if mark not in marks or bool(mark) != bool(marks):
            expected = " or ".join(marks) or "the end"
            error = json.JSONDecodeError(f"{expected} expected", self._text, self._at)
            error.lineno += self._lines
            raise error
        self._at += len(mark)
        return mark

    def value(self) -> Any:
        """Pass a value and return it."""
        self.next()
        self._read_ahead()
        begin = self._at
        try:
            value, self._at = _SCAN(self._text, begin)
        except json.JSONDecodeError as error:
            is_cut = error.pos > len(self._text) - _LONGEST_WORD or "Unterminated" in error.msg
            if is_cut and not self._ended:
                raise ValueError(_TOO_LONG) from error
            error.lineno += self._lines
            raise
        _check_value(value, self._most)
        if _HALF_CHARACTER.search(self._text, begin, self._at):
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:
                raise ValueError("a text has half of a surrogate pair") from error
        return value

    def _read_ahead(self) -> None:
        while not self._ended and len(self._text) - self._at < MAX_OBJECT:
            self._lines += self._text.count("\n", 0, self._at)
            more = self._file.read(_BLOCK)
            self._text, self._at = self._text[self._at :] + more, 0
            self._ended = len(more) < _BLOCK


_NO_SPACE = re.compile(r"[^ \t\n\r]")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_WORD = len("-Infinity")
_TOO_LONG = f"an object is larger than {MAX_OBJECT >> 20} MiB; leave out the indents (`| jq -c .`)"


def _check_value(value: Any, most: int) -> None:
    level, count, levels = [value], 0, 0
    while level:
        count += len(level)
        collections = [each for each in level if type(each) is dict or type(each) is list]
        levels += bool(collections)
        if count > most or levels > MAX_DEPTH:
            problem = f"an object has more than {most} values" if count > most else _TOO_DEEP
            raise ValueError(problem)
        level = [
            inner
            for each in collections
            for inner in (each.values() if type(each) is dict else each)
        ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(_twice(next(key for key, count in counts.items() if count > 1)))
    return found


_SCAN = json.JSONDecoder(object_pairs_hook=_unique).raw_decode


def _twice(key: str) -> str:
    return f"the key {key} is there twice"


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet.

    Attributes:
        anchor: What aliases call it.
        keys: Of a mapping those so far; None for a sequence.
        items: Keys and values so far.
        size: Values in it, those of aliases too.
        levels: Of collections in it, those of aliases too.
    """

    anchor: str | None = None
    keys: set[str] | None = None
    items: int = 0
    size: int = 0
    levels: int = 0


def check_costs(
    text: str, source: str, *, most: int, only_first: bool = False, unique: bool = False
) -> None:
    """Refuse what would cost too much before YAML is composed: a recursion in C ends the process.

    Args:
        text: The text.
        source: What to call it in messages.
        most: How many values it may have, those of aliases too.
        only_first: Whether documents after the first are not looked at.
        unique: Whether a mapping with a key twice is refused too.

    Raises:
        ConfigurationError: A document is nested too deep, has too many values, or an alias stands
            within what it names.
        yaml.YAMLError: It is not YAML.
    """
    stack, known, count = [_Open()], dict[str, tuple[int, int]](), 0
    for event in yaml.parse(text, LOADER):
        parent, size, levels = stack[-1], 1, 0
        problem = ""
        if isinstance(event, yaml.CollectionStartEvent):
            is_map = isinstance(event, yaml.MappingStartEvent)
            stack.append(_Open(event.anchor, set() if is_map else None))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = stack.pop()
            parent, size, levels = stack[-1], ended.size + 1, ended.levels + 1
            if ended.anchor:
                known[ended.anchor] = size, levels
        elif isinstance(event, yaml.AliasEvent):
            if any(each.anchor == event.anchor for each in stack):
                problem = f"the alias *{event.anchor} is within what it names"
            size, levels = known.get(event.anchor or "", (1, 0))
            if (count := count + size) > most:
                problem = problem or f"aliases make more than {most} values"
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                known[event.anchor] = 1, 0
            if unique and parent.keys is not None and parent.items % 2 == 0:
                if event.value in parent.keys and event.value != "<<":
                    problem = _twice(event.value)
                parent.keys.add(event.value)
        elif only_first and isinstance(event, yaml.DocumentEndEvent):
            return
        else:
            continue
        if len(stack) + levels > MAX_DEPTH + 1:
            problem = problem or _TOO_DEEP
        elif count > most:
            problem = problem or f"more than {most} values"
        if problem:
            raise ConfigurationError(f"{source}:{line_of(event)}: {problem}")
        if isinstance(event, yaml.CollectionStartEvent):
            continue
        parent.items += 1
        parent.size += size
        parent.levels = max(parent.levels, levels)


def line_of(part: yaml.Node | yaml.Event) -> int:
    """Return the line of a node or an event, from 1."""
    return int(part.start_mark.line) + 1 if part.start_mark else 1
