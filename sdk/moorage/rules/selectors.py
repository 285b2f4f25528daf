r"""The selector languages of kubectl, and which objects of a kind a plugin reads by them.

Of labels: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1,j<5`. Of fields:
`spec.nodeName=n1,status.phase!=Failed`, where a backslash, a comma and an equals sign in values are
written with a backslash before them. Both decide as the API server does.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

from moorage.models import ObjectKind
from moorage.models.base import Requirement
from moorage.rules.nodes import matches_requirement
from moorage.units.integers import parse_int64

LONGEST = 200
"""Characters of a selector that messages quote."""


class SelectorError(ValueError):
    """A selector cannot be understood; the message names the place and what was expected there."""

    def __init__(self, kind: str, text: str, position: int, problem: str) -> None:
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        super().__init__(f"{kind} selector {shown!r}, character {position + 1}: {problem}")
        self.position = position
        """Where the mistake starts, counted in characters from 0."""


_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!<>(),])|(?P<word>[^ \t\r\n=!<>(),]+))"
)
_OPERATORS: Final = {
    "=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt",
}  # fmt: skip
_NAME: Final = re.compile(r"(?=.{1,63}\Z)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """A label selector; call it with labels. Without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def __call__(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement."""
        return all(matches_requirement(requirement, labels) for requirement in self.requirements)


def parse_label_selector(text: str) -> LabelMatcher:
    """Read a label selector as people write it; an empty text matches everything.

    Raises:
        SelectorError: The text is not a selector; the message has the place of the mistake.
    """
    return LabelMatcher(tuple(_Parser(text).requirements()))


class _Token(NamedTuple):
    text: str
    position: int
    is_word: bool


class _Parser:
    """Reads tokens from left to right; each method takes what it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = ((match, match.lastgroup or "") for match in _TOKEN.finditer(text))
        tokens = [_Token(m[group], m.start(group), group == "word") for m, group in found]
        self._rest = iter([*tokens, _Token("", len(text), is_word=False)])
        self._next = next(self._rest)

    def requirements(self) -> Iterator[Requirement]:
        if not self._next.text:
            return
        yield self._requirement()
        while self._next.text:
            self._expect(",", "',' or the end")
            yield self._requirement()

    def _requirement(self) -> Requirement:
        absent = self._accept("!")
        key = self._key()
        if absent or self._next.text in ("", ","):
            return Requirement(key=key, operator="DoesNotExist" if absent else "Exists")
        sign = self._operator()
        values = self._set() if sign in ("in", "notin") else (self._value(),)
        if sign in ("<", ">"):
            self._check_integer(values[0])
        texts = tuple(value.text for value in values)
        return Requirement(key=key, operator=_OPERATORS[sign], values=texts)

    def _key(self) -> str:
        token = self._take()
        if not token.is_word:
            self._fail(token, "a label key")
        prefix, slash, name = token.text.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
            self._fail(token, 'a label key such as "app" or "example.com/app"')
        return token.text

    def _operator(self) -> str:
        token = self._take()
        if token.text not in _OPERATORS:
            self._fail(token, "one of = == != in notin > <")
        return token.text

    def _set(self) -> tuple[_Token, ...]:
        self._expect("(", "'('")
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._expect(")", "',' or ')'")
        return tuple(values)

    def _value(self) -> _Token:
        # No word means the empty value: "a=", "a in (x,)".
        token = self._next
        if not token.is_word:
            return _Token("", token.position, is_word=True)
        if not _NAME.fullmatch(token.text):
            self._fail(token, "a label value: at most 63 letters, digits, '-', '_' and '.'")
        return self._take()

    def _check_integer(self, value: _Token) -> None:
        if parse_int64(value.text) is None:
            self._fail(value, "an integer")

    def _take(self) -> _Token:
        token, self._next = self._next, next(self._rest, self._next)
        return token

    def _accept(self, symbol: str) -> bool:
        return self._next.text == symbol and bool(self._take())

    def _expect(self, symbol: str, wanted: str) -> None:
        if not self._accept(symbol):
            self._fail(self._next, wanted)

    def _fail(self, token: _Token, expected: str) -> NoReturn:
        found = repr(token.text[:LONGEST]) if token.text else "the end"
        raise SelectorError(
            "label", self._text, token.position, f"expected {expected}, found {found}"
        )


_TERM: Final = re.compile(r"(?:\\.|[^,])*", re.DOTALL)
_OPERATOR: Final = re.compile(r"!=|==|=")
_SPECIAL: Final = re.compile(r"\\([\\,=])|([\\=])")


class FieldTerm(NamedTuple):
    """One comparison of a field, named by its dotted path."""

    field: str
    value: str
    negated: bool


@dataclass(frozen=True, slots=True)
class FieldMatcher:
    """A field selector; call it with a function from dotted paths to the object's values."""

    terms: tuple[FieldTerm, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """The dotted paths that it reads, for a server to refuse those it does not support."""
        return frozenset(term.field for term in self.terms)

    def __call__(self, get: Callable[[str], str]) -> bool:
        """Return whether the object meets every term."""
        return all((get(term.field) == term.value) != term.negated for term in self.terms)


def parse_field_selector(text: str) -> FieldMatcher:
    """Read a field selector as people write it; an empty text matches everything.

    Raises:
        SelectorError: The text is not a selector; the message has the place of the mistake.
    """
    return FieldMatcher(tuple(_terms(text)))


def _terms(text: str) -> Iterator[FieldTerm]:
    for part in _TERM.finditer(text):
        if part[0]:
            yield _term(text, part[0], part.start())


def _term(text: str, part: str, start: int) -> FieldTerm:
    operator = _OPERATOR.search(part)
    if operator is None:
        raise SelectorError("field", text, start + len(part), "expected one of = == !=")
    field = part[: operator.start()]
    if not field:
        raise SelectorError("field", text, start, "expected a field such as metadata.name")
    value = _unescape(text, part[operator.end() :], start + operator.end())
    return FieldTerm(field, value, negated=operator[0] == "!=")


def _unescape(text: str, value: str, start: int) -> str:
    def literal(match: re.Match[str]) -> str:
        if match[2]:
            wanted = r"after a backslash one of \ , =" if match[2] == "\\" else r"'\=' in a value"
            raise SelectorError("field", text, start + match.start(), f"expected {wanted}")
        return match[1]

    return _SPECIAL.sub(literal, value)


def check_kind(kind: ObjectKind) -> None:
    """Read the selectors of a kind.

    Raises:
        SelectorError: One of them is none; the message has the place of the mistake.
    """
    parse_label_selector(kind.label_selector)
    parse_field_selector(kind.field_selector)


def selects_object(kind: ObjectKind, manifest: Mapping[str, Any]) -> bool:
    """Return whether an object of the kind is one of those that are meant.

    Args:
        kind: The kind, with a namespace and selectors perhaps.
        manifest: The object as the API server has it.

    Raises:
        SelectorError: A selector of the kind is none.
    """
    metadata = manifest.get("metadata") or {}
    if kind.namespace and metadata.get("namespace", "") != kind.namespace:
        return False
    if not parse_label_selector(kind.label_selector)(metadata.get("labels") or {}):
        return False
    return parse_field_selector(kind.field_selector)(lambda path: _field(manifest, path))


def _field(manifest: Mapping[str, Any], path: str) -> str:
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
