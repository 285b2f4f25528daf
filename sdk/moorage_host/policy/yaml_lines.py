"""Reads YAML or JSON into plain values and keeps the line of each.

Stricter than PyYAML where it would guess: duplicate keys, keys that are no strings, numbers that
YAML 1.1 and 1.2 read differently (017, 12:30), tags, several documents. Called by `document`.

A file that Kubernetes' own programs read too must mean the same here. For these (`as_kubernetes`)
scalars are what Go's YAML makes of them, merge keys are followed, only the first document counts.
"""

import itertools
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from moorage.errors import ConfigurationError
from moorage.files import LOADER, check_costs, line_of
from moorage_host.policy.checks import Problem, child

MAX_BYTES = 1 << 20
MAX_VALUES = 100_000
MOST_PROBLEMS = 100  # reported one by one

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
        lines = [
            f"{self.where(p.path)}: {p.message}{self.hints.get(p.path, '')}".replace("\n", " ")
            for p in ordered[:MOST_PROBLEMS]
        ]
        if (others := len(ordered) - len(lines)) > 0:
            lines.append(f"{self.source}: {others} more mistakes")
        raise ConfigurationError("\n".join(lines))


def read_tree(text: str, source: str, *, as_kubernetes: bool = False) -> Tree:
    """Return the only document in a YAML or JSON text.

    Args:
        text: The text.
        source: What to call it in messages, such as the file name.
        as_kubernetes: Read it as Kubernetes' programs do: the first document, with Go's scalars.

    Raises:
        ConfigurationError: It is not YAML, empty, several documents, or too large.
    """
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"{source}:1: larger than {MAX_BYTES} characters")
    root = _root(text, source, only_first=as_kubernetes)
    tree = Tree(source=source)
    if is_json := as_kubernetes and text.lstrip().startswith("{"):
        _check_json(text, source)
    reader = _KubernetesReader(tree, is_json=is_json) if as_kubernetes else _Reader(tree)
    tree.lines[""] = line_of(root)
    tree.value = reader.value(root, "")
    return tree


def _root(text: str, source: str, *, only_first: bool) -> yaml.Node:
    try:
        check_costs(text, source, most=MAX_VALUES, only_first=only_first)
        documents = yaml.compose_all(text, LOADER)
        listed = itertools.islice(documents, 1) if only_first else documents
        roots = [node for node in listed if not _is_empty(node)]
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
        line = f"{source}:{line_of(roots[1])}"
        raise ConfigurationError(f"{line}: a second YAML document: only one is allowed")
    return roots[0]


def _check_json(text: str, source: str) -> None:
    """Refuse what begins like JSON and is none: Kubernetes' programs do not read it as YAML."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"it begins with {{ and is not JSON: {error.msg}"
        raise ConfigurationError(f"{source}:{error.lineno}: {problem}") from error
    except ValueError as error:  # a number of thousands of digits
        raise ConfigurationError(f"{source}:1: it is not JSON: {error}") from error


class _Reader:
    """Turns nodes into values, of which `check_costs` has limited number and levels."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def value(self, node: yaml.Node, path: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._object(node, path)
        if isinstance(node, yaml.SequenceNode):
            return self._array(node, path)
        assert isinstance(node, yaml.ScalarNode)  # noqa: S101 - there is no fourth kind
        return self._scalar(node, path)

    def _object(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        self._check_tag(node, path, "map")
        result: dict[str, Any] = {}
        for key_node, value_node in self._pairs(node):
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            inner = child(path, key)
            if problem := _key_problem(key_node, key in result):
                self._tree.lines[inner] = line_of(key_node)
                self._tree.problems.append(Problem(inner, problem))
                continue
            self._tree.lines[inner] = line_of(key_node)
            result[key] = self.value(value_node, inner)
        return result

    def _pairs(self, node: yaml.MappingNode) -> Iterable[tuple[yaml.Node, yaml.Node]]:
        pairs: list[tuple[yaml.Node, yaml.Node]] = node.value
        return pairs

    def _array(self, node: yaml.SequenceNode, path: str) -> list[Any]:
        self._check_tag(node, path, "seq")
        result = []
        for index, item in enumerate(node.value):
            inner = child(path, index)
            self._tree.lines[inner] = line_of(item)
            result.append(self.value(item, inner))
        return result

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        try:
            value = _plain_value(node)
        except (ValueError, KeyError, IndexError):
            self._tree.problems.append(Problem(path, f"{node.value} is not {_short(node.tag)}"))
            return node.value
        if problem := _scalar_problem(node, value):
            self._tree.problems.append(Problem(path, problem))
        self._hint(node.value, value, path)
        return value

    def _hint(self, text: str, value: Any, path: str) -> None:
        if isinstance(value, bool) and text.lower() not in {"true", "false"}:
            hint = f'; YAML reads {text} as {str(value).lower()}: write "{text}" if text is meant'
            self._tree.hints[path] = hint

    def _check_tag(self, node: yaml.Node, path: str, expected: str) -> None:
        if node.tag != _TAG + expected:
            self._tree.problems.append(Problem(path, f"the tag {_short(node.tag)} is not allowed"))


class _KubernetesReader(_Reader):
    """Reads scalars as Go's YAML does, and follows merge keys.

    A number of JSON that has a point or an exponent is no integer; one of YAML is, if it is whole.
    """

    def __init__(self, tree: Tree, *, is_json: bool) -> None:
        super().__init__(tree)
        self._is_json = is_json

    def _pairs(self, node: yaml.MappingNode) -> Iterable[tuple[yaml.Node, yaml.Node]]:
        for key, value in node.value:
            if key.tag != _TAG + "merge":
                yield key, value
                continue
            for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(each, yaml.MappingNode):
                    yield from self._pairs(each)

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        implied = _RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False))
        if node.style or node.tag != implied:
            return super()._scalar(node, path)  # in quotes, or with a tag
        value = _as_go(node.value, is_json=self._is_json)
        if isinstance(value, float) and not math.isfinite(value):
            self._tree.problems.append(Problem(path, f"{node.value} is not a finite number"))
        self._hint(node.value, value, path)
        return value


_RESOLVER: Any = yaml.resolver.Resolver()
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE, _FALSE = (
    frozenset(form for word in words for form in (word, word.capitalize(), word.upper()))
    for words in (("y", "yes", "on", "true"), ("n", "no", "off", "false"))
)
_OCTAL = re.compile(r"[-+]?0[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MOST_EXACT = 1e21  # beyond it Go writes a whole number with an exponent


def _as_go(text: str, *, is_json: bool) -> Any:
    """Return what Go's YAML reads a scalar without quotes as."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    number = text.replace("_", "")
    if not number.isascii():
        return text  # Python reads the digits of other scripts too
    try:
        return int(number, 8 if _OCTAL.fullmatch(number) else 0)
    except ValueError:
        found = float(number) if _FLOAT.fullmatch(number) else math.inf
    if not math.isfinite(found):
        return text
    return int(found) if found.is_integer() and abs(found) < _MOST_EXACT and not is_json else found


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
    if kind == "null" and node.value not in _NULLS:
        raise ValueError(node.value)
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


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")
