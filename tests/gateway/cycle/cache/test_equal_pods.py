"""Equal pods: from the third on, no replica is asked while nothing changes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.cycle.cache.caching import (
    FULL,
    NAMES,
    TAINTED,
    Asked,
    answered,
    caching,
    decided,
    fill,
    noting,
    of_set,
    place_all,
)
from tests.gateway.sharing import place, same
from tools.inprocess.gateway import Gateway


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with caching(tmp_path, *noting(Asked())) as found:
        await fill(found)
        yield found


async def test_the_third_is_answered_as_the_first_without_asking(process: Gateway) -> None:
    first, second = await place_all(process, "first", "second")
    assert first["filter"]["NodeNames"] == ["n1", "n2", "n3"]
    assert first["filter"]["FailedNodes"] == {"n4": FULL.reason}
    assert first["filter"]["FailedAndUnresolvableNodes"] == {"n5": TAINTED.reason}
    assert first["scores"] == {"n1": 17, "n2": 34, "n3": 51}
    same(first, second)
    assert answered(process) == (2, 2)
    for name in ("third", "fourth"):
        same(first, await place(process, of_set(name), NAMES))
    same(first, await place(process, of_set("turned"), NAMES[::-1]))
    assert answered(process) == (2, 2)


async def test_the_decision_says_what_was_kept_of_whom(process: Gateway) -> None:
    await place_all(process, "first", "second", "third")
    first, second, third = [await decided(process, n) for n in ("first", "second", "third")]
    for half, count in (("filter", 5), ("score", 3)):
        assert "cachedNodes" not in {**first[half], **second[half]}
        assert third[half].pop("cachedNodes") == count
        assert third[half].pop("cachedFrom") == "default/second"
        assert third[half].pop("seconds") == 0
        first[half].pop("seconds")
        for record in (first[half], third[half]):
            for plugin in record["plugins"]:
                plugin.pop("seconds")
        assert third[half] == first[half]
    (fits,) = third["filter"]["plugins"]
    assert {each["reason"]: each["nodes"] for each in fits["reasons"]} == {
        FULL.reason: 1,
        TAINTED.reason: 1,
    }
    assert [each["node"] for each in third["score"]["top"]] == ["n3", "n2", "n1"]


async def test_some_of_the_nodes_and_unknown_ones(process: Gateway) -> None:
    await place_all(process, "first", "second")
    some = await place(process, of_set("third"), ("n2", "ghost", "n1", "n5"))
    assert some["filter"]["NodeNames"] == ["n1", "n2"]
    assert set(some["filter"]["FailedAndUnresolvableNodes"]) == {"n5", "ghost"}
    assert some["scores"] == {"n1": 26, "n2": 51}, "the best of these nodes has the most"
    assert answered(process) == (2, 2)
    decision = await decided(process, "third")
    assert decision["filter"]["unknownNodes"] == 1
    assert decision["filter"]["cachedNodes"] == 3


async def test_a_prioritize_call_of_its_own_is_answered_from_memory_too(process: Gateway) -> None:
    await place_all(process, "first", "second")
    scores = await process.prioritize(of_set("alone"), "n3", "n1")
    assert scores == [{"Host": "n3", "Score": 51}, {"Host": "n1", "Score": 17}]
    assert answered(process) == (2, 2)


async def test_nodes_that_nobody_knows_and_names_that_come_twice(process: Gateway) -> None:
    names = ("n2", "ghost", "n1", "n2")
    answers = []
    for name in ("first", "second", "third"):
        filtered = await process.filter(of_set(name), *names)
        scores = await process.prioritize(of_set(name), *names)
        unknown = await process.prioritize(of_set(name), "ghost", "phantom")
        answers.append((filtered, scores, unknown))
    assert answers[0] == answers[1] == answers[2]
    filtered, scores, unknown = answers[0]
    assert filtered["NodeNames"] == ["n2", "n1", "n2"]
    assert {each["Host"]: each["Score"] for each in scores} == {"n1": 26, "n2": 51}
    assert unknown == []
