import pytest

from moorage.models import (
    LabelSelector,
    Metadata,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from moorage.rules import (
    matches_labels,
    matches_node_selector,
    matches_node_selector_term,
    matches_requirement,
)

WEB = {"app": "web", "tier": "front", "cores": "16"}
N1 = NodeManifest(metadata=Metadata(name="n1", labels={"zone": "a"}))


def requirement(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def term(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not matches_labels(None, WEB)
    assert matches_labels(LabelSelector(), WEB)
    assert matches_labels(LabelSelector(), {})


def test_every_label_and_every_expression_must_match() -> None:
    one = LabelSelector(match_labels={"app": "web"})
    assert matches_labels(one, WEB)
    assert not matches_labels(one, {"app": "db"})
    assert not matches_labels(LabelSelector(match_labels={"app": "web", "absent": ""}), WEB)
    both = LabelSelector(
        match_labels={"app": "web"}, match_expressions=(requirement("tier", "NotIn", "front"),)
    )
    assert not matches_labels(both, WEB)
    assert matches_labels(both, {"app": "web"})


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


def test_an_unknown_operator_is_an_error_that_names_it_and_the_key() -> None:
    with pytest.raises(ValueError, match="key 'app': operator 'in' does not exist"):
        matches_requirement(requirement("app", "in", "web"), WEB)


def test_one_matching_term_is_enough() -> None:
    a, b = term(requirement("zone", "In", "a")), term(requirement("zone", "In", "b"))
    assert matches_node_selector(NodeSelector(node_selector_terms=(b, a)), N1)
    assert not matches_node_selector(NodeSelector(node_selector_terms=(b,)), N1)


def test_a_term_without_conditions_and_a_selector_without_terms_match_no_node() -> None:
    assert not matches_node_selector_term(term(), N1)
    assert not matches_node_selector(NodeSelector(), N1)


def test_all_conditions_of_a_term_must_hold() -> None:
    here = requirement("metadata.name", "In", "n1")
    assert matches_node_selector_term(term(fields=(here,)), N1)
    assert matches_node_selector_term(term(requirement("zone", "Exists"), fields=(here,)), N1)
    assert not matches_node_selector_term(term(requirement("gpu", "Exists"), fields=(here,)), N1)
    elsewhere = requirement("metadata.name", "NotIn", "n1")
    assert not matches_node_selector_term(
        term(requirement("zone", "Exists"), fields=(elsewhere,)), N1
    )


def test_fields_other_than_the_name_are_never_set() -> None:
    other = requirement("spec.unschedulable", "In", "false")
    assert not matches_node_selector_term(term(fields=(other,)), N1)
