r"""The field selector language of kubectl: `spec.nodeName=n1,status.phase!=Failed`.

In values, a backslash, a comma and an equals sign are written with a backslash before them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.rules.errors import SelectorError

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
