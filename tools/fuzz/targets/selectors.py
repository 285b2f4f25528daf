"""Label and field selectors: what is read is written down again, and evaluated a second way."""

import re

from moorage.rules import SelectorError, parse_field_selector, parse_label_selector
from tools.fuzz.targets.target import Target, require

_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"a": "1"},
    {"a": "b", "x/y": "-5"},
    {"a": "", "tier": "db", "x/y": "9"},
)
_ABSENT = "\0" * 301  # longer than a case
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class Selectors(Target):
    """`moorage.rules`: the first character chooses the language."""

    name = "selectors"
    share = 30
    tokens = (
        " in (",
        " notin (",
        "!=",
        "==",
        "=",
        "!",
        ">",
        "<",
        ",",
        ")",
        "a",
        "x/y",
        "tier",
        "\\,",
    )
    longest = 300

    async def case(self, data: bytes) -> None:
        text = data[1:].decode(errors="surrogateescape")
        try:
            if data[:1] == b"f":
                _fields(text)
            else:
                _labels(text)
        except SelectorError as error:
            require(0 <= error.position <= len(text), "a place outside of the text", error)
            require(len(str(error)) < 3000, "a long message", error)


def _fields(text: str) -> None:
    matcher = parse_field_selector(text)
    written = ",".join(
        f"{term.field}{'!=' if term.negated else '='}{_escaped(term.value)}"
        for term in matcher.terms
    )
    require(parse_field_selector(written) == matcher, "does not read what it means", written)
    values = {term.field: term.value for term in matcher.terms if not term.negated}
    expected = all((values.get(t.field) == t.value) != t.negated for t in matcher.terms)
    require(matcher(lambda path: values.get(path, _ABSENT)) == expected, "matches otherwise", text)


def _escaped(text: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", text)


def _labels(text: str) -> None:
    matcher = parse_label_selector(text)
    written = []
    for one in matcher.requirements:
        values = ",".join(one.values)
        written.append(
            {
                "Exists": one.key,
                "DoesNotExist": f"!{one.key}",
                "In": f"{one.key} in ({values})",
                "NotIn": f"{one.key} notin ({values})",
                "Gt": f"{one.key}>{values}",
                "Lt": f"{one.key}<{values}",
            }[one.operator]
        )
        require(_NAME.fullmatch(one.key.rpartition("/")[2]), "a key that is none", one)
        for value in one.values:
            require(not value or _NAME.fullmatch(value), "a value that is none", one)
    again = parse_label_selector(",".join(written))
    for labels in _LABELS:
        expected = all(_meets(r.key, r.operator, r.values, labels) for r in matcher.requirements)
        require(matcher(labels) == expected, "matches otherwise than Kubernetes", (text, labels))
        require(again(labels) == expected, "does not read what it means", (text, written))


def _meets(key: str, operator: str, values: tuple[str, ...], labels: dict[str, str]) -> bool:
    """Evaluate a requirement as `labels.Requirement.Matches` of apimachinery does."""
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if key not in labels:
        return False
    if operator in ("Gt", "Lt"):
        try:
            left, right = int(labels[key]), int(values[0])
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    return operator == "Exists" or labels[key] in values
