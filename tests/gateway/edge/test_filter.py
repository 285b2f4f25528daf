"""What filter calls get back, field by field."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.cycle import ANSWER_SECONDS, CallFailedError, Cycle
from tools.inprocess.edge import (
    Filtered,
    ScriptedCycles,
    keep_all,
    names_args,
    node,
    nodes_args,
    pod,
    serving,
    subset,
    text,
)

TAINT = "node(s) had untolerated taint"
TWICE = ["b", "a"] * 2500
ODD = ['q"uote', "back\\slash", "<&>", "ü", "\u2028"]
KEYS = ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"]
BAD = "moorage: the request was not understood: the call has "
NO_NODES: dict[str, Any] = {"metadata": {}, "items": []}


async def keep_first(call: Cycle) -> Filtered:
    _, *others = call.nodes.names
    return Filtered(feasible=subset(call, 0), unresolvable=dict.fromkeys(others, TAINT))


async def reject(call: Cycle) -> Filtered:
    return Filtered(feasible=subset(call), failed={"a": "too full"}, unresolvable={"b": TAINT})


@pytest.mark.parametrize(
    ("decide", "args", "answer"),
    [
        (keep_first, names_args("b", "a"), {"NodeNames": ["b"], "Nodes": None, "Error": ""}),
        (keep_first, names_args("b", "a"), {"FailedAndUnresolvableNodes": {"a": TAINT}}),
        (keep_first, names_args(*ODD), {"NodeNames": ODD[:1]}),
        (
            keep_first,
            names_args(*ODD),
            {"FailedAndUnresolvableNodes": dict.fromkeys(ODD[1:], TAINT)},
        ),
        (reject, names_args("a", "b"), {"NodeNames": [], "FailedNodes": {"a": "too full"}}),
        (reject, names_args("a", "b"), {"FailedAndUnresolvableNodes": {"b": TAINT}}),
        (reject, nodes_args("a", "b"), {"NodeNames": None, "Nodes": NO_NODES}),
        (keep_all, nodes_args("b", "a"), {"Nodes": nodes_args("b", "a")["Nodes"]}),
        (keep_all, names_args(*TWICE), {"NodeNames": TWICE, "FailedNodes": None}),
        (keep_all, names_args(*ODD), {"NodeNames": ODD}),
        (keep_all, names_args(), {"NodeNames": [], "Nodes": None, "Error": ""}),
        (keep_all, nodes_args(), {"NodeNames": None, "Nodes": NO_NODES, "Error": ""}),
        (keep_all, nodes_args() | {"Nodes": {"items": None}}, {"Nodes": NO_NODES, "Error": ""}),
        (keep_all, {"o": 1, "pod": pod(), "nodenames": ["a"]}, {"NodeNames": ["a"], "Error": ""}),
        (keep_all, {"POD": pod(), "Nodes": None, "nodeNames": ["a"]}, {"NodeNames": ["a"]}),
        (
            keep_all,
            {"Pod": pod()},
            {"NodeNames": None, "Error": f"{BAD}neither NodeNames nor Nodes"},
        ),
        (
            keep_all,
            nodes_args("a", "b") | {"NodeNames": ["a", "c"]},
            {"NodeNames": None, "Error": f"{BAD}both NodeNames and Nodes, but for different nodes"},
        ),
    ],
)
async def test_each_field_of_an_answer_follows_from_the_call(
    decide: Callable[[Cycle], Awaitable[Filtered]], args: Any, answer: dict[str, Any]
) -> None:
    async with serving(ScriptedCycles(on_filter=decide)) as edge:
        found = await edge.post("/filter", args)
    assert list(found.json) == KEYS
    assert {key: found.json[key] for key in answer} == answer


async def test_nodes_are_answered_with_the_very_text_of_the_survivors() -> None:
    first = '{"metadata":{"name":"a","managedFields":[{"manager":"kubelet"}]},"spec":{},"x":1.50}'
    body = f'{{"Pod":{text(pod())},"Nodes":{{"metadata":{{}},"items":[{first},{text(node("b"))}]}},'
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        answer = await edge.post("/filter", body + '"NodeNames":null}')
    assert answer.body.startswith(
        b'{"Nodes":{"metadata":{},"items":[' + first.encode() + b']},"NodeNames":null,'
    )
    assert answer.json["FailedAndUnresolvableNodes"] == {"b": TAINT}


async def test_both_fields_are_answered_when_both_were_given() -> None:
    args = nodes_args("a", "b") | {"NodeNames": ["b", "a"]}
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        answer = (await edge.post("/filter", args)).json
        (call,) = edge.cycles.scheduling
    assert answer["NodeNames"] == ["b"]
    assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["b"]
    assert call.nodes.given is not None
    assert [given.manifest.name for given in call.nodes.given] == ["b", "a"]


async def test_the_call_has_the_pod_verbatim_and_the_names_in_order() -> None:
    verbatim = text(pod())[:-1] + ', "unknown" : 1e2 }'
    body = f'{{"Pod":{verbatim},"Nodes":null,"NodeNames":["b","a"]}}'
    async with serving() as edge:
        await edge.post("/filter/NodeName", body)
        (call,) = edge.cycles.scheduling
    assert call.pod_json == verbatim.encode()
    assert (call.pod.name, call.pod.metadata.uid) == ("web-0", "u-1")
    assert list(call.nodes.names) == ["b", "a"]
    assert call.nodes.given is None
    assert call.plugin == "NodeName"


async def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    first, last = text(pod("first")), text(pod("last"))
    body = f'{{"Pod":{first},"NodeNames":["x"],"pod":{last},"NodeNames":["a"]}}'
    async with serving() as edge:
        answer = (await edge.post("/filter", body)).json
        (call,) = edge.cycles.scheduling
    assert call.pod.name == "last"
    assert answer["NodeNames"] == ["a"]


async def test_a_busy_loop_does_not_hide_why_a_call_failed() -> None:
    """It finds the call's own time over together with that of the edge."""

    async def fail(call: Cycle) -> Filtered:
        loop = asyncio.get_running_loop()

        def keep_busy() -> None:
            while loop.time() <= call.deadline:
                pass

        loop.call_soon(keep_busy)
        try:
            async with asyncio.timeout_at(call.deadline - ANSWER_SECONDS):
                await asyncio.Event().wait()
        except TimeoutError as error:
            raise CallFailedError("there is no policy yet") from error
        raise AssertionError

    async with serving(ScriptedCycles(on_filter=fail), http_timeout=0.1) as edge:
        answer = await edge.post("/filter", names_args("a"))
    assert answer.json["Error"] == "there is no policy yet"


async def test_a_call_is_answered_before_kube_scheduler_gives_up() -> None:
    cancelled = []

    async def hang(_: Cycle) -> Filtered:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        raise AssertionError

    async with serving(ScriptedCycles(on_filter=hang), http_timeout=0.1) as edge:
        answer = await edge.post("/filter", names_args("a"))
    assert answer.json["Error"] == "moorage: the gateway did not decide in time"
    assert cancelled == [True]


async def test_one_call_s_answer_is_not_another_s() -> None:
    """What is remembered of one array of names must not leak into calls for other arrays."""
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        for names in (
            ["a", "b"],
            ["a"],
            ["b", "a"],
            ["c", "d"],
            ["a", "b", "c"],
            ["a", "b"],
            ["ab"],
        ):
            answer = (await edge.post("/filter", names_args(*names))).json
            assert answer["NodeNames"] == names[:1]
            await edge.post("/prioritize", names_args(*names))
            assert list(edge.cycles.scheduling[-1].nodes.names) == names
