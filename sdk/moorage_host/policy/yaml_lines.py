"""Reads YAML or JSON into plain values and keeps the line of each.

Stricter than PyYAML where it would guess: duplicate keys, keys that are no strings, numbers that
YAML 1.1 and 1.2 read differently (017, 12:30), tags, several documents. Called by `document`.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from moorage.errors import ConfigurationError
from moorage_host.policy.checks import Problem, child

MAX_BYTES = 1 << 20
MAX_VALUES = 100_000
MAX_DEPTH = 64

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_AMBIGUOUS = re.compile(r"[-+]?(0[0-7_]+|[0-9_]+(:[0-9_.]+)+)")
_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(slots=True, kw_only=True)
class Tree:
    """A YAML document as plain values.

    Attributes:
        value: dict, list, str, int, float, bool or None.
        source: Where the text came from, usually a file.
        lines: The line, from 1, by path.
        hints: What to write, by path, where YAML reads something else than one may think.
        problems: What may not stay as it is.
    """

    value: Any = None
    source: str
    lines: dict[str, int] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: str) -> int:
        """Return the line of a path, or of its nearest parent that is written out."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 1)

    def where(self, path: str) -> str:
        """Return `source:line: path`."""
        return f"{self.source}:{self.line(path)}" + (f": {path}" if path else "")

    def refuse(self, problems: list[Problem]) -> None:
        """Raise ConfigurationError with a line for each problem, by line, if there is any."""
        if not problems:
            return
        ordered = sorted(problems, key=lambda p: (self.line(p.path), p.path))
        lines = (f"{self.where(p.path)}: {p.message}{self.hints.get(p.path, '')}" for p in ordered)
        raise ConfigurationError("\n".join(line.replace("\n", " ") for line in lines))


def read_tree(text: str, source: str) -> Tree:
    """Return the only document in a YAML or JSON text.

    Raises:
        ConfigurationError: It is not YAML, empty, several documents, or too large.
    """
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"{source}:1: larger than {MAX_BYTES} characters")
    root = _root(text, source)
    tree = Tree(source=source)
    reader = _Reader(tree)
    tree.lines[""] = _line(root)
    tree.value = reader.value(root, "", 0)
    return tree


def _root(text: str, source: str) -> yaml.Node:
    try:
        _check_depth(text, source)
        roots = [node for node in yaml.compose_all(text, _LOADER) if not _is_empty(node)]
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        context = f" ({error.context})" if error.context else ""
        raise ConfigurationError(f"{source}{line}: not YAML: {error.problem}{context}") from error
    except yaml.YAMLError as error:
        at = text.count("\n", 0, getattr(error, "position", 0)) + 1
        message = f"{source}:{at}: not YAML: {str(error).splitlines()[0]}"
        raise ConfigurationError(message) from error
    if not roots:
        raise ConfigurationError(f"{source}:1: empty")
    if len(roots) > 1:
        line = f"{source}:{_line(roots[1])}"
        raise ConfigurationError(f"{line}: a second YAML document: only one is allowed")
    return roots[0]


def _check_depth(text: str, source: str) -> None:
    """Refuse deep nesting before `compose`, whose recursion in C would end the process."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigurationError(
                f"{source}:{_line(event)}: nested more than {MAX_DEPTH} levels deep"
            )


class _Reader:
    """Turns nodes into values; limits what aliases can multiply."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._count = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            where = f"{self._tree.source}:{_line(node)}"
            raise ConfigurationError(
                f"{where}: aliases make more than {MAX_VALUES} values or {MAX_DEPTH} levels"
            )
        if isinstance(node, yaml.MappingNode):
            return self._object(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return self._array(node, path, depth)
        assert isinstance(node, yaml.ScalarNode)  # noqa: S101 - there is no fourth kind
        return self._scalar(node, path)

    def _object(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        self._check_tag(node, path, "map")
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            inner = child(path, key)
            if problem := _key_problem(key_node, key in result):
                self._tree.lines[inner] = _line(key_node)
                self._tree.problems.append(Problem(inner, problem))
                continue
            self._tree.lines[inner] = _line(key_node)
            result[key] = self.value(value_node, inner, depth + 1)
        return result

    def _array(self, node: yaml.SequenceNode, path: str, depth: int) -> list[Any]:
        self._check_tag(node, path, "seq")
        result = []
        for index, item in enumerate(node.value):
            inner = child(path, index)
            self._tree.lines[inner] = _line(item)
            result.append(self.value(item, inner, depth + 1))
        return result

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        try:
            value = _plain_value(node)
        except (ValueError, KeyError):
            self._tree.problems.append(Problem(path, f"{node.value} is not {_short(node.tag)}"))
            return node.value
        if problem := _scalar_problem(node, value):
            self._tree.problems.append(Problem(path, problem))
        if isinstance(value, bool) and node.value.lower() not in {"true", "false"}:
            shown = str(value).lower()
            hint = f'; YAML reads {node.value} as {shown}: write "{node.value}" if text is meant'
            self._tree.hints[path] = hint
        return value

    def _check_tag(self, node: yaml.Node, path: str, expected: str) -> None:
        if node.tag != _TAG + expected:
            self._tree.problems.append(Problem(path, f"the tag {_short(node.tag)} is not allowed"))


def _key_problem(node: yaml.Node, duplicate: bool) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a key must be a string"
    if duplicate:
        return "the key is there twice"
    kind = node.tag.removeprefix(_TAG)
    if kind == "merge":
        return (
            "merge keys (<<) are not supported: repeat the fields, or use an alias for all of them"
        )
    if kind != "str":
        return f'a key must be a string: YAML reads {node.value} as {kind}; write "{node.value}"'
    return ""


def _scalar_problem(node: yaml.ScalarNode, value: Any) -> str:
    text, kind = node.value, node.tag.removeprefix(_TAG)
    if kind not in {*_CONSTRUCTORS, "str", "timestamp", "value", "merge"}:
        return f"the tag {_short(node.tag)} is not allowed"
    if kind in {"int", "float"} and _AMBIGUOUS.fullmatch(text):
        return f'{text} is ambiguous, YAML 1.1 reads {value}: write {value}, or "{text}" in quotes'
    if isinstance(value, float) and not math.isfinite(value):
        return f"{text} is not a finite number"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"{text} does not fit into 64 bits"
    return ""


def _plain_value(node: yaml.ScalarNode) -> Any:
    kind = node.tag.removeprefix(_TAG)
    if kind in _CONSTRUCTORS:
        return _CONSTRUCTORS[kind](yaml.constructor.SafeConstructor(), node)
    if kind == "str" and not node.style and _EXPONENT.fullmatch(node.value):
        return float(node.value)  # a number in JSON and YAML 1.2, though not in YAML 1.1
    return node.value


_CONSTRUCTORS: dict[str, Any] = {
    "null": yaml.constructor.SafeConstructor.construct_yaml_null,
    "bool": yaml.constructor.SafeConstructor.construct_yaml_bool,
    "int": yaml.constructor.SafeConstructor.construct_yaml_int,
    "float": yaml.constructor.SafeConstructor.construct_yaml_float,
}


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.value and not node.style


def _line(part: yaml.Node | yaml.Event) -> int:
    return int(part.start_mark.line) + 1 if part.start_mark else 1


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")
