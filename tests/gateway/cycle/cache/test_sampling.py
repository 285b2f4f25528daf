"""Equal pods on samples of the nodes, as kube-scheduler takes them in clusters of hundreds."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from gateway.cycle.cache.node_values import PREFETCH_LIMIT
from tests.gateway.cycle.cache.caching import (
    Asked,
    caching,
    events,
    node,
    noting,
    of_set,
    told,
)
from tests.gateway.sharing import place
from tools.inprocess.api import until
from tools.inprocess.gateway import Gateway

COUNT, WINDOW = 120, 40
NAMES = [f"n{number}" for number in range(1, COUNT + 1)]
ROOM = "3"


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def process(tmp_path: Path, asked: Asked) -> AsyncIterator[Gateway]:
    async with caching(tmp_path, *noting(asked)) as found:
        for name in NAMES:
            found.api.create("/api/v1/nodes", node(name, pods=ROOM))
        await until(lambda: found.sample("moorage_cache_size", type="nodes") == COUNT)
        yield found


def window(number: int) -> list[str]:
    """Return the nodes that kube-scheduler looks at for a pod: it goes on where it stopped."""
    start = number * WINDOW % COUNT
    return NAMES[start : start + WINDOW]


async def bind_to_best(process: Gateway, number: int, loads: dict[str, int]) -> None:
    """Place a pod on its window, check the answer, and have it bound where the score is best."""
    names = window(number)
    placed = await place(process, of_set(f"p{number}"), names)
    free = [name for name in names if loads.get(name, 0) < int(ROOM)]
    assert placed["filter"]["NodeNames"] == sorted(free)
    raw = {name: int(name[1:]) + loads.get(name, 0) for name in free}
    top = max(raw.values())
    assert placed["scores"] == {name: (100 * raw[name] // top + 2) // 2 for name in free}
    best = max(free, key=raw.__getitem__)
    loads[best] = loads.get(best, 0) + 1
    await told(process, "pods", lambda: process.api.pod(f"load-{number}", nodeName=best))


async def test_after_the_first_round_only_changed_nodes_are_asked_about(
    process: Gateway, asked: Asked
) -> None:
    loads: dict[str, int] = {}
    rounds = COUNT // WINDOW
    for number in range(1 + rounds):  # of the first pod it is not known that others are equal
        await bind_to_best(process, number, loads)
        filters, scores = asked.taken()
        assert len(filters[0]) >= WINDOW
        assert len(scores[0]) >= WINDOW - 1
    for number in range(1 + rounds, 6 * rounds):
        await bind_to_best(process, number, loads)
        for calls in asked.taken():
            assert len(calls) <= 1, "one question for each half"
            assert all(len(names) <= 2 * rounds for names in calls)
    assert sum(loads.values()) == 6 * rounds
    assert events(process, "pods") == 6 * rounds


async def test_changed_nodes_elsewhere_are_asked_about_along_but_not_for_themselves(
    process: Gateway, asked: Asked
) -> None:
    for number in range(4):
        await place(process, of_set(f"p{number}"), window(number))
    asked.taken()
    first, second, third = window(0), window(1), window(2)
    for name in (second[0], third[0], third[5]):
        await told(process, "nodes", partial(label, process, name))
    await place(process, of_set("elsewhere"), first)
    assert asked.taken() == ([], [])
    await told(process, "nodes", lambda: label(process, first[7]))
    await place(process, of_set("here"), first)
    names = sorted([first[7], second[0], third[0], third[5]])
    assert asked.taken() == ([names], [names])
    for nodes in (second, third):
        placed = await place(process, of_set(f"of-{nodes[0]}"), nodes)
        assert placed["scores"][nodes[0]] == 100 // 2 + 1
    assert asked.taken() == ([], [])


async def test_only_some_of_them_are_asked_about_along(process: Gateway, asked: Asked) -> None:
    for number in range(4):
        await place(process, of_set(f"p{number}"), window(number))
    asked.taken()
    first, others = window(0), [*window(1), *window(2)]
    for name in (*others, first[-1]):
        await told(process, "nodes", partial(label, process, name))
    placed = await place(process, of_set("here"), first)
    assert placed["scores"][first[-1]] == 100 // 2 + 1
    for calls in asked.taken():
        assert len(calls) == 1
        assert len(calls[0]) in (PREFETCH_LIMIT, PREFETCH_LIMIT + 1)
        assert first[-1] in calls[0]
    await place(process, of_set("there"), window(2))
    assert all(set(window(2)) <= {*calls[0], *others[:PREFETCH_LIMIT]} for calls in asked.taken())


async def test_nodes_that_are_gone_take_no_place_among_those_that_are_asked_about_along(
    process: Gateway, asked: Asked
) -> None:
    for number in range(4):
        await place(process, of_set(f"p{number}"), window(number))
    asked.taken()
    for name in NAMES[:PREFETCH_LIMIT]:
        path = f"/api/v1/nodes/{name}"
        await told(process, "nodes", partial(process.api.delete, path))
    last, third = window(1)[-1], window(2)[0]
    for name in (last, third):
        await told(process, "nodes", partial(label, process, name))
    await place(process, of_set("here"), window(1))
    assert asked.taken() == ([sorted([last, third])], [sorted([last, third])])


def label(process: Gateway, name: str) -> None:
    """Make a node the best of all."""
    process.api.label(f"/api/v1/nodes/{name}", liked="1000")
