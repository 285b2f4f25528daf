"""Whatever the names and the casing, bodies are read and written as json does."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cycle import Cycle, GivenNode, NodeSet
from gateway.edge.answers import filter_answer, prioritize_answer
from gateway.edge.bodies import BadRequestError
from gateway.edge.requests import RequestReader
from tools.inprocess.edge import Filtered, names_args, node, nodes_args, pod, text

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8)


def new_reader(nodes: int = 10) -> RequestReader:
    return RequestReader(nodes)


def read(body: bytes, reader: RequestReader) -> Cycle:
    return asyncio.run(reader.scheduling(body))


def answered(outcome: Filtered, reader: RequestReader) -> bytes:
    reader.keep(outcome.feasible)
    return filter_answer(outcome.feasible, outcome.failed, outcome.unresolvable)


def casings(key: str) -> st.SearchStrategy[str]:
    return st.tuples(*(st.sampled_from((c.lower(), c.upper())) for c in key)).map("".join)


@given(names=NAMES, data=st.data())
def test_any_part_of_the_names_is_written_as_json(names: list[str], data: st.DataObject) -> None:
    reader = new_reader()
    body = json.dumps({"Pod": pod(), "NodeNames": names}, ensure_ascii=False).encode()
    request = read(body, reader)
    kept = np.array([data.draw(st.booleans()) for _ in names], np.bool_)
    subset = request.nodes.restricted(kept)
    feasible = list(subset.names)
    reasons = dict.fromkeys(set(request.nodes.names) - set(feasible), 'a "reason"')
    outcome = Filtered(feasible=subset, failed=reasons)
    answer = json.loads(answered(outcome, reader))
    assert answer["NodeNames"] == feasible
    assert (answer["FailedNodes"] or {}) == reasons


@given(names=NAMES.map(lambda names: list(dict.fromkeys(names))), data=st.data())
def test_scores_are_written_as_json(names: list[str], data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(0, 100), min_size=len(names), max_size=len(names)))
    answer = json.loads(prioritize_answer(NodeSet(names), scores))
    named = [(h, s) for h, s in zip(names, scores, strict=True) if s or not any(scores)]
    assert answer == [{"Host": h, "Score": s} for h, s in named]


@given(keys=st.tuples(casings("Pod"), casings("Nodes"), casings("NodeNames")), names=NAMES)
def test_casing_makes_no_difference(keys: tuple[str, ...], names: list[str]) -> None:
    values: tuple[Any, ...] = (pod(), None, names)
    body = text(dict(zip(keys, values, strict=True))).encode()
    request = read(body, new_reader())
    assert list(request.nodes.names) == names
    assert request.pod_json == text(pod()).encode()


@pytest.mark.parametrize(
    "tail",
    [
        ',"Nodes":null,"NodeNames":["a"],"NodeNames":["b"]}',
        ',"Other":[{"Pod":1,"Nodes":null,"NodeNames":["a"]}],"NodeNames":["b"]}',
        ',"Other":"\\",\\"Nodes\\":null,\\"NodeNames\\":[","Nodes":null,"NodeNames":["b"]}',
        ',"Nodes":null,"NodeNames":["a"],"Other":{"x":1},"nodenames":["b"]}',
        ',"Nodes":null,"NodeNames":["b"],"Other":["a"]}',
    ],
)
def test_bodies_that_only_look_like_go_s_are_read_as_a_whole(tail: str) -> None:
    body = ('{"Pod":' + text(pod()) + tail).encode()
    assert list(read(body, new_reader()).nodes.names) == ["b"]


@given(cut=st.integers(0, 10_000), byte=st.binary(min_size=0, max_size=2))
def test_a_damaged_body_is_refused_or_is_json(cut: int, byte: bytes) -> None:
    whole = text({"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}).encode()
    at = cut % len(whole)
    body = whole[:at] + byte + whole[at + 1 :]
    try:
        read(body, new_reader())
    except BadRequestError:
        return
    json.loads(body.decode(errors="replace"))  # as Go reads text that is not UTF-8


@pytest.mark.parametrize("limit", [2, 3, 10])
def test_unchanged_nodes_keep_their_manifest_and_changed_ones_do_not(limit: int) -> None:
    reader = new_reader(limit)
    before = given_nodes({"a": "1", "b": "1"}, reader)
    after = given_nodes({"b": "1", "a": "2"}, reader)
    assert after["b"].manifest is before["b"].manifest
    assert after["a"].manifest.metadata.labels == {"version": "2"}
    again = given_nodes({"a": "1", "b": "1"}, reader)
    assert again["a"].manifest is before["a"].manifest


def test_no_more_nodes_are_kept_than_twice_the_limit() -> None:
    reader = new_reader(2)
    first = given_nodes({"a": "1"}, reader)
    given_nodes(dict.fromkeys("bcdef", "1"), reader)
    assert given_nodes({"a": "1"}, reader)["a"].manifest is not first["a"].manifest


def given_nodes(versions: dict[str, str], reader: RequestReader) -> dict[str, GivenNode]:
    items = [node(name, version=version) for name, version in versions.items()]
    args = nodes_args() | {"Nodes": {"metadata": {}, "items": items}}
    nodes = read(text(args).encode(), reader).nodes
    return {given.manifest.name: given for given in nodes.given or ()}


async def test_a_call_can_be_given_up_while_its_nodes_are_read_and_others_go_on() -> None:
    nodes = [node(f"n{i}", x="y" * 4000) for i in range(500)]
    body = text({"Pod": pod(), "Nodes": {"items": nodes}, "NodeNames": None}).encode()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    request = await new_reader(1000).scheduling(body)
    others.cancel()
    assert len(request.nodes) == 500
    assert turns > 5
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await new_reader(1000).scheduling(body)


def test_a_pod_that_no_api_server_takes_is_refused() -> None:
    body = text(names_args("a") | {"Pod": pod() | {"x": "y" * (4 << 20)}}).encode()
    with pytest.raises(BadRequestError, match="the pod has more than 4194304 bytes"):
        read(body, new_reader())


def test_a_pod_with_too_many_constraints_is_refused() -> None:
    toleration = {"key": "a", "value": "b" * 60, "effect": "NoSchedule"}
    heavy = pod()
    heavy["spec"]["tolerations"] = [toleration] * 2000
    with pytest.raises(BadRequestError, match=r"tolerations .* have more than 65536 bytes"):
        read(text(names_args("a") | {"Pod": heavy}).encode(), new_reader())
