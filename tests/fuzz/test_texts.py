"""Whatever a text is: read as Kubernetes and Go read it, or refused with its place."""

import re
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given

from cli.config.policies import load_registries, resolve_file
from moorage.errors import ConfigurationError
from moorage.rules import SelectorError, parse_field_selector, parse_label_selector
from moorage.units.durations import format_duration, parse_duration
from moorage.units.quantity import INT64_MAX, QuantityError, format_quantity, scaled
from moorage_host.policy import KINDS, decode_effective
from tests.fuzz.cases import ODD, bodies, of_words

PLUGINS = {
    "multiPoint": {"enabled": [{"name": "InTree"}], "disabled": [{"name": "NodePorts"}]},
    "filter": {"enabled": [{"name": "NodeGroup", "timeBudget": "10ms"}]},
    "score": {"enabled": [{"name": "ImageScore", "weight": 3, "failurePolicy": "Abort"}]},
}
DOCUMENT = {
    "apiVersion": "moorage.io/v1alpha1",
    "kind": "MoorageConfiguration",
    "scoreScale": 10,
    "profiles": [
        {
            "schedulerName": "moorage",
            "plugins": PLUGINS,
            "pluginConfig": [{"name": "NodeGroup", "args": {"label": "group"}}],
        }
    ],
}
NAMES = ("NodeResourcesFit", "InTree", "multiPoint", "bind", "enabled", "10ms", "Abort", "*")
YAML = of_words(
    *("apiVersion: moorage.io/v1alpha1\n", "kind: MoorageConfiguration\n", "profiles:\n"),
    *("- schedulerName: a\n", "plugins:", "filter:", "{enabled: [{name: InTree}]}", "weight:"),
    *("&a", "*a", "<<: ", "!!python/object", "? ", "--- ", "\n- ", "\t", "\n  "),
    most=12,
).map(lambda text: text.encode(errors="replace"))
LONGEST_MESSAGE = 20_000

REGISTRIES = load_registries(())


@given(text=bodies([DOCUMENT], (*ODD, *NAMES)) | YAML)
def test_a_policy_is_read_and_written_again_or_each_mistake_has_its_place(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "policy.yaml"
    file.write_bytes(text)
    try:
        resolved = resolve_file(file, REGISTRIES)
    except ConfigurationError as error:
        check_places(str(error), file)
        return
    file.write_text(resolved.to_yaml())
    assert resolve_file(file, REGISTRIES).to_yaml() == resolved.to_yaml()
    for kind in KINDS:
        decode_effective(resolved.for_kind(kind))


def check_places(message: str, file: Path) -> None:
    assert len(message) < LONGEST_MESSAGE
    assert all(line.startswith(f"{file}:") for line in message.splitlines()), message


# ---- selectors

SELECTORS = of_words(
    *(" in (", " notin (", "!=", "==", "=", "!", ">", "<", ",", ")"),
    *("a", "x/y", "tier", "\\,", "5"),
    most=12,
)
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"a": "1"},
    {"a": "b", "x/y": "-5"},
    {"a": "", "tier": "db", "x/y": "9"},
)
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
WRITTEN = {
    "Exists": "{0}",
    "DoesNotExist": "!{0}",
    "In": "{0} in ({1})",
    "NotIn": "{0} notin ({1})",
    "Gt": "{0}>{1}",
    "Lt": "{0}<{1}",
}


def refused(error: SelectorError, text: str) -> None:
    assert 0 <= error.position <= len(text), error
    assert len(str(error)) < 3000


@given(text=SELECTORS)
def test_a_label_selector_matches_as_kubernetes_does_and_can_be_written_again(text: str) -> None:
    try:
        matcher = parse_label_selector(text)
    except SelectorError as error:
        refused(error, text)
        return
    for one in matcher.requirements:
        assert NAME.fullmatch(one.key.rpartition("/")[2]), one
        assert all(not value or NAME.fullmatch(value) for value in one.values), one
    written = (WRITTEN[r.operator].format(r.key, ",".join(r.values)) for r in matcher.requirements)
    again = parse_label_selector(",".join(written))
    for labels in LABELS:
        expected = all(meets(r.key, r.operator, r.values, labels) for r in matcher.requirements)
        assert matcher(labels) == again(labels) == expected, (text, labels)


def meets(key: str, operator: str, values: tuple[str, ...], labels: dict[str, str]) -> bool:
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


@given(text=SELECTORS)
def test_a_field_selector_matches_what_it_says_and_can_be_written_again(text: str) -> None:
    try:
        matcher = parse_field_selector(text)
    except SelectorError as error:
        refused(error, text)
        return
    written = (
        t.field + ("!=" if t.negated else "=") + re.sub(r"([\\,=])", r"\\\1", t.value)
        for t in matcher.terms
    )
    assert parse_field_selector(",".join(written)) == matcher
    values = {term.field: term.value for term in matcher.terms if not term.negated}
    expected = all((values.get(t.field) == t.value) != t.negated for t in matcher.terms)
    assert matcher(lambda path: values.get(path, "\0" * 301)) == expected


# ---- quantities and durations

LETTERS = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
SUFFIXES = {
    suffix: Fraction(10) ** power for suffix, power in zip(LETTERS, range(-9, 21, 3), strict=True)
} | {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
LONGEST = 256  # characters of a quantity that are read at all

NUMBERS = ("0", "1", "9", "05", "99999999999999999999", ".", "-", "+")


@given(text=of_words(*NUMBERS, *SUFFIXES, "e", "e-", "E+", "1e309", "9" * 260))
def test_a_quantity_is_what_it_is_to_kubernetes(text: str) -> None:
    expected = quantity(text)
    for resource, factor in (("cpu", 1000), ("memory", 1)):
        try:
            value = scaled(resource, text)
        except QuantityError:
            assert expected is None
            continue
        assert expected is not None
        assert abs(value) == min(ceil(abs(expected) * factor), INT64_MAX)
        assert value <= 0 or expected >= 0
        assert scaled(resource, format_quantity(resource, value)) == value


def quantity(text: str) -> Fraction | None:
    """Read a quantity as the comment at Kubernetes' `resource.Quantity` has its grammar."""
    text = text.strip("".join(each for each in text if each.isspace() and each >= " "))
    match = re.fullmatch(r"([+-]?)([0-9.]*)((?:[eE][+-]?[0-9]+)|[a-zA-Z]*)", text, re.ASCII)
    if match is None or not 0 < len(text) <= LONGEST or match[2].count(".") > 1:
        return None
    if not re.search("[0-9]", match[2]) and match[3] in ("Pi", "Ei"):
        return None  # with any other suffix kube-apiserver reads 0
    if match[3] in SUFFIXES:
        factor = SUFFIXES[match[3]]
    elif re.fullmatch(r"[eE][+-]?[0-9]+", match[3]):
        factor = Fraction(10) ** max(-300, min(300, int(match[3][1:])))
    else:
        return None
    whole, _, fraction = match[2].partition(".")
    number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * factor
    return -number if match[1] == "-" else number


NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


@given(text=of_words(*NUMBERS, *NANOSECONDS, "1h30m", "9223372036854775807"))
def test_a_duration_is_what_it_is_to_go(text: str) -> None:
    expected = duration(text)
    try:
        seconds = parse_duration(text)
    except ValueError:
        assert expected is None
        return
    assert expected is not None
    assert abs(Fraction(seconds) - expected) <= max(Fraction(1, 10**9), abs(expected) / 2**50)
    again = parse_duration(format_duration(seconds))
    assert abs(again - seconds) <= max(2e-9, abs(seconds) / 2**50)


def duration(text: str) -> Fraction | None:
    """Read a duration as Go's `time.ParseDuration` does, in seconds."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return Fraction(0)
    total = Fraction(0)
    if not rest:
        return None
    while rest:
        match = re.match(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)(?![a-zµμ])", rest)
        if match is None or not (match[1] or (match[2] or "")[1:]):
            return None
        digits = (match[2] or ".")[1:]
        number = Fraction(int(match[1] + digits or "0"), 10 ** len(digits))
        total += number * NANOSECONDS[match[3]]
        rest = rest[match.end() :]
    if total > 2**63 - 2**10 or len(text) > LONGEST:
        return None  # Go: an int64 of nanoseconds; a float cannot hold the largest exactly
    return (-total if text.startswith("-") else total) / 10**9
