"""What prioritize calls get back."""

from collections.abc import Sequence

import pytest

from gateway.cycle import CallFailedError, Cycle
from tools.inprocess.edge import (
    Filtered,
    ScriptedCycles,
    names_args,
    nodes_args,
    pod,
    serving,
    subset,
)


def scoring(*scores: int) -> ScriptedCycles:
    async def prioritize(_: Cycle) -> Sequence[int]:
        return scores

    return ScriptedCycles(on_prioritize=prioritize)


async def test_the_answer_is_a_bare_list_of_hosts_and_whole_numbers() -> None:
    async with serving(scoring(7, 10)) as edge:
        answer = await edge.post("/prioritize", names_args("b", "a"))
    assert answer.body == b'[{"Host":"b","Score":7},{"Host":"a","Score":10}]'


@pytest.mark.parametrize(
    ("scores", "named"),
    [
        ((0, 3, 0), ["b"]),
        ((0, 0, 5), ["c"]),
        ((1, 2, 3), ["a", "b", "c"]),
        ((0, 0, 0), ["a", "b", "c"]),
        ((), []),
    ],
)
async def test_nodes_at_zero_are_left_out_unless_all_are(
    scores: Sequence[int], named: list[str]
) -> None:
    async with serving(scoring(*scores)) as edge:
        answer = (await edge.post("/prioritize", names_args("a", "b", "c"))).json
    assert [entry["Host"] for entry in answer] == named


async def test_nodes_at_zero_are_named_when_the_setting_says_so() -> None:
    async with serving(scoring(0, 3), omit_zero_scores=False) as edge:
        answer = (await edge.post("/prioritize", names_args("a", "b"))).json
    assert answer == [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 3}]


async def test_the_nodes_that_a_filter_call_left_are_ranked_by_name_in_their_order() -> None:
    async def keep(call: Cycle) -> Filtered:
        return Filtered(feasible=subset(call, 0, 1))

    cycles = scoring(7, 0)
    cycles.on_filter = keep
    async with serving(cycles) as edge:
        assert (await edge.post("/filter", names_args("b", "a", "c"))).json["NodeNames"]
        for _ in range(2):
            answer = await edge.post("/prioritize", names_args("b", "a"))
            assert answer.body == b'[{"Host":"b","Score":7}]'


async def test_whole_nodes_are_ranked_by_name() -> None:
    async with serving(scoring(100, 1)) as edge:
        answer = (await edge.post("/prioritize", nodes_args("b", "a"))).json
    assert answer == [{"Host": "b", "Score": 100}, {"Host": "a", "Score": 1}]


async def test_hosts_that_need_escaping_survive() -> None:
    names = ['q"uote', "back\\slash"]
    async with serving(scoring(1, 2)) as edge:
        answer = (await edge.post("/prioritize", names_args(*names))).json
    assert [entry["Host"] for entry in answer] == names


@pytest.mark.parametrize("scores", [(1001, 1), (-1, 1), (1,), (1, 2, 3), (0, 1, 0), (7.5, 1)])
async def test_nonsense_is_no_opinion_and_counted(scores: Sequence[int]) -> None:
    async with serving(scoring(*scores)) as edge:
        answer = await edge.post("/prioritize", names_args("a", "b"))
        hidden = edge.count("moorage_extender_hidden_failures_total", result="internal")
    assert (answer.status, answer.body, hidden) == (200, b"[]", 1)


@pytest.mark.parametrize(
    ("failure", "result"),
    [
        (CallFailedError("scorer service"), "failed"),
        (TimeoutError(), "timeout"),
        (OSError(), "internal"),
    ],
)
async def test_a_failure_is_no_opinion_and_counted(failure: Exception, result: str) -> None:
    async def fail(_: Cycle) -> Sequence[int]:
        raise failure

    async with serving(ScriptedCycles(on_prioritize=fail)) as edge:
        answer = await edge.post("/prioritize/Fit", names_args("a"))
        hidden = edge.count("moorage_extender_hidden_failures_total", result=result)
    assert (answer.status, answer.body, hidden) == (200, b"[]", 1)


@pytest.mark.parametrize("body", ["", "{}", {"Pod": pod()}, names_args("a") | {"Pod": pod(uid="")}])
async def test_what_is_not_understood_is_no_opinion_and_counted(body: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/prioritize", body)
        hidden = edge.count("moorage_extender_hidden_failures_total", result="bad_request")
        assert edge.cycles.scheduling == []
    assert (answer.status, answer.body, hidden) == (200, b"[]", 1)
