from typing import Any

import pytest

from sandbox.scheduler.extenders.client import (
    AnswerError,
    bind_answer,
    decode_answer,
    filter_answer,
    preempt_answer,
    score_answer,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b" \n[1] trailing", [1]),
        (b"null", None),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        ('"é\xff"'.encode("latin-1"), "��"),
    ],
)
def test_the_first_json_value_is_what_counts(text: bytes, value: Any) -> None:
    assert decode_answer(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "EOF"),
        (b"  ", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'{"a": ', "unexpected EOF"),
        (b"NaN", "invalid character 'N'"),
        (b"[-Infinity]", "invalid character '-'"),
        (b"\xef\xbb\xbf{}", "invalid character"),
    ],
)
def test_what_go_cannot_read_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(AnswerError) as caught:
        decode_answer(text)
    assert str(caught.value).startswith(problem)


def test_keys_match_in_any_case_and_unknown_ones_are_ignored() -> None:
    answer = filter_answer({"nodenames": ["a"], "FAILEDNODES": {"B": "no"}, "node_names": 5})
    assert (answer.names, answer.failed, answer.nodes) == (["a"], {"B": "no"}, None)


def test_null_is_the_zero_value_everywhere() -> None:
    nothing = filter_answer(None)
    nulls = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}
    assert filter_answer(nulls) == nothing == (None, None, {}, {}, "")
    assert score_answer(None) == []
    assert score_answer([{"Host": "a", "Score": None}]) == [("a", 0)]
    assert preempt_answer({}) == {}
    assert bind_answer({"Error": None}) == ""


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([], "cannot unmarshal array into Go value of type v1.ExtenderFilterResult"),
        ({"NodeNames": "a"}, "cannot unmarshal string into Go struct field"),
        ({"NodeNames": [1]}, "NodeNames of type string"),
        ({"FailedNodes": {"a": 3}}, "cannot unmarshal number 3 into Go struct field FailedNodes"),
        ({"Nodes": {"items": ["a"]}}, "v1.Node"),
        ({"Error": 1}, "Error of type string"),
    ],
)
def test_a_wrong_type_fails_a_filter_answer(answer: Any, problem: str) -> None:
    with pytest.raises(AnswerError) as caught:
        filter_answer(answer)
    assert problem in str(caught.value)


@pytest.mark.parametrize("score", [7.0, 7.5, "7", True, 2**63, [7]])
def test_scores_are_integers_of_64_bits(score: Any) -> None:
    with pytest.raises(AnswerError, match=r"HostPriority\.Score of type int64"):
        score_answer([{"Host": "a", "Score": score}])


def test_any_other_integer_is_a_score() -> None:
    given = [{"Host": "a", "Score": -5}, {"host": "a", "score": 99}, {"Host": "b"}]
    assert score_answer(given) == [("a", -5), ("a", 99), ("b", 0)]


@pytest.mark.parametrize("victims", [None, {"Pods": [None]}])
def test_nulls_that_crash_the_real_one_are_refused_with_a_warning(victims: Any) -> None:
    with pytest.raises(AnswerError, match="crashes"):
        preempt_answer({"NodeNameToMetaVictims": {"n": victims}})


def test_victims_keep_their_order() -> None:
    pods = [{"UID": "b"}, {"uid": "a"}]
    assert preempt_answer({"NodeNameToMetaVictims": {"n": {"Pods": pods}}}) == {"n": ["b", "a"]}
