"""Selectors in all their languages, and tolerations."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.models import (
    Requirement,
    Taint,
    Toleration,
)
from moorage.rules import (
    FieldMatcher,
    SelectorError,
    matches_requirement,
    parse_field_selector,
    parse_label_selector,
)
from moorage.rules.taints import (
    tolerates,
)

WEB = {"app": "web", "tier": "front", "cores": "16"}


def requirement(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("written", "met"),
    [
        (requirement("app", "In", "db", "web"), True),
        (requirement("app", "In", "db"), False),
        (requirement("absent", "In", "db"), False),
        (requirement("app", "NotIn", "db"), True),
        (requirement("app", "NotIn", "db", "web"), False),
        (requirement("absent", "NotIn", "db"), True),
        (requirement("app", "Exists"), True),
        (requirement("absent", "Exists"), False),
        (requirement("app", "DoesNotExist"), False),
        (requirement("absent", "DoesNotExist"), True),
        (requirement("cores", "Gt", "15"), True),
        (requirement("cores", "Gt", "16"), False),
        (requirement("cores", "Lt", "17"), True),
        (requirement("cores", "Lt", "16"), False),
        (requirement("cores", "Gt", "-1"), True),
        (requirement("cores", "Lt", "+017"), True),
    ],
)
def test_operators_compare_the_value_of_the_key(written: Requirement, met: bool) -> None:
    assert matches_requirement(written, WEB) is met


@pytest.mark.parametrize("value", ["", "x", "1.5", "1_6", " 16", "16Gi", "9223372036854775808"])
def test_what_is_no_64_bit_integer_is_neither_greater_nor_less(value: str) -> None:
    for operator in ("Gt", "Lt"):
        assert not matches_requirement(requirement("cores", operator, "1"), {"cores": value})
        assert not matches_requirement(requirement("cores", operator, value), {"cores": "1"})
    assert not matches_requirement(requirement("absent", "Lt", "5"), {})
    assert not matches_requirement(requirement("cores", "Gt", "1", "2"), {"cores": "16"})


Condition = tuple[str, str, tuple[str, ...]]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("", []),
        ("  ", []),
        ("a=b", [("a", "In", ("b",))]),
        ("a == b", [("a", "In", ("b",))]),
        ("a!=b", [("a", "NotIn", ("b",))]),
        ("a in (x,y)", [("a", "In", ("x", "y"))]),
        ("a notin ( x , y )", [("a", "NotIn", ("x", "y"))]),
        ("a", [("a", "Exists", ())]),
        ("!a", [("a", "DoesNotExist", ())]),
        ("a>1", [("a", "Gt", ("1",))]),
        ("a < 5", [("a", "Lt", ("5",))]),
        ("a=", [("a", "In", ("",))]),
        ("a=,b!=", [("a", "In", ("",)), ("b", "NotIn", ("",))]),
        ("a in ()", [("a", "In", ("",))]),
        ("a in (x,)", [("a", "In", ("x", ""))]),
        ("in in (in,notin)", [("in", "In", ("in", "notin"))]),
        ("example.com/app=web", [("example.com/app", "In", ("web",))]),
        (" ! a ,\tb ", [("a", "DoesNotExist", ()), ("b", "Exists", ())]),
    ],
)
def test_label_selectors_say_what_they_say_to_kubectl(
    text: str, conditions: list[Condition]
) -> None:
    matcher = parse_label_selector(text)
    assert [(r.key, r.operator, r.values) for r in matcher.requirements] == conditions


@pytest.mark.parametrize(
    ("text", "character", "expected", "found"),
    [
        ("a,", 3, "a label key", "the end"),
        (",a", 1, "a label key", "','"),
        ("=a", 1, "a label key", "'='"),
        ("!", 2, "a label key", "the end"),
        ("!a=b", 3, "',' or the end", "'='"),
        ("a b", 3, "one of = == != in notin > <", "'b'"),
        ("a=b c", 5, "',' or the end", "'c'"),
        ("a=(b)", 3, "',' or the end", "'('"),
        ("a in b", 6, "'('", "'b'"),
        ("a in (b", 8, "',' or ')'", "the end"),
        ("a in (b c)", 9, "',' or ')'", "'c'"),
        ("k>five", 3, "an integer", "'five'"),
        ("k>", 3, "an integer", "the end"),
        ("x.Y/a=b", 1, "a label key such as", "'x.Y/a'"),
        ("a/b/c=d", 1, "a label key such as", "'a/b/c'"),
        ("a=-b", 3, "a label value", "'-b'"),
        ("a=" + "b" * 64, 3, "a label value", "'" + "b" * 64),
        ("app=wéb", 5, "a label value", "'wéb'"),
    ],
)
def test_a_mistake_in_a_label_selector_is_located_and_explained(
    text: str, character: int, expected: str, found: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    message = str(caught.value)
    assert f"{text!r}, character {character}: expected {expected}" in message
    assert f"found {found}" in message
    assert caught.value.position == character - 1


def test_a_label_matcher_wants_every_requirement() -> None:
    matcher = parse_label_selector("app=web,tier notin (db),!old,cores>4")
    assert matcher({"app": "web", "cores": "8"})
    assert not matcher({"app": "web", "cores": "8", "old": ""})
    assert not matcher({"app": "web", "cores": "4"})
    assert parse_label_selector("")({})


def matches(text: str, fields: Mapping[str, str]) -> bool:
    return parse_field_selector(text)(lambda path: fields.get(path, ""))


def test_field_selectors_compare_dotted_paths() -> None:
    pod = {"spec.nodeName": "n1", "status.phase": "Running"}
    assert matches("spec.nodeName=n1,status.phase!=Failed", pod)
    assert matches("spec.nodeName==n1", pod)
    assert not matches("spec.nodeName=n1,status.phase!=Running", pod)
    assert matches("status.nominatedNodeName=", pod)
    assert matches("", pod)
    assert matches(",status.phase=Running,", pod)


def test_special_characters_in_field_values_have_a_backslash() -> None:
    assert matches(r"a=x\,y\=z\\,b=1", {"a": "x,y=z\\", "b": "1"})


@given(st.text())
def test_every_value_can_be_selected_once_it_is_escaped(value: str) -> None:
    escaped = value.replace("\\", r"\\").replace(",", r"\,").replace("=", r"\=")
    assert matches(f"a={escaped}", {"a": value})
    assert not matches(f"a!={escaped},b=", {"a": value})


def test_a_server_can_see_which_fields_are_read() -> None:
    matcher: FieldMatcher = parse_field_selector("a.b=1,c!=2,a.b!=3")
    assert matcher.fields == {"a.b", "c"}


@pytest.mark.parametrize(
    ("text", "character", "problem"),
    [
        ("spec.nodeName", 14, "expected one of = == !="),
        ("a=b,spec.nodeName", 18, "expected one of = == !="),
        ("a=b,=c", 5, "expected a field"),
        ("a=b=c", 4, r"expected '\=' in a value"),
        (r"a=b\c", 4, "expected after a backslash one of"),
        ("a=b\\", 4, "expected after a backslash one of"),
    ],
)
def test_a_mistake_in_a_field_selector_is_located_and_explained(
    text: str, character: int, problem: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert f"field selector {text!r}, character {character}: {problem}" in str(caught.value)


GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration(key="gpu", value="a100", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="", value="a100"), True),
        (Toleration(key="gpu", value="h100"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="tpu", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="exists"), False),
    ],
)
def test_a_toleration_covers_taints_with_its_key_value_and_effect(
    toleration: Toleration, covered: bool
) -> None:
    assert tolerates(toleration, GPU) is covered


@pytest.mark.parametrize(
    ("operator", "bound", "value", "covered"),
    [
        ("Gt", "900", "950", True),
        ("Gt", "950", "950", False),
        ("Gt", "-5", "0", True),
        ("Lt", "950", "900", True),
        ("Lt", "900", "900", False),
        ("Lt", "0950", "900", False),
        ("Lt", "+950", "900", False),
        ("Gt", "0", "high", False),
        ("Gt", "", "1", False),
        ("Lt", "9223372036854775808", "1", False),
    ],
)
def test_gt_and_lt_cover_taints_with_a_greater_or_smaller_integer(
    operator: str, bound: str, value: str, covered: bool
) -> None:
    toleration = Toleration(key="sla", operator=operator, value=bound)
    assert tolerates(toleration, Taint(key="sla", value=value, effect="NoSchedule")) is covered
