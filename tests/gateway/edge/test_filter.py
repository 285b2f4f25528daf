"""What filter calls get back, field by field."""

import asyncio
import json

import pytest

from gateway.cycle import ANSWER_SECONDS, CallFailedError, Cycle
from tools.inprocess.edge import (
    Filtered,
    ScriptedCycles,
    names_args,
    node,
    nodes_args,
    pod,
    serving,
    subset,
    text,
)

TAINT = "node(s) had untolerated taint"


async def keep_first(call: Cycle) -> Filtered:
    _, *others = call.nodes.names
    return Filtered(feasible=subset(call, 0), unresolvable=dict.fromkeys(others, TAINT))


async def test_names_are_answered_with_names_and_every_key_is_there() -> None:
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        answer = await edge.post("/filter", names_args("b", "a", "c"))
    assert answer.body == (
        b'{"Nodes":null,"NodeNames":["b"],"FailedNodes":null,"FailedAndUnresolvableNodes":'
        b'{"a":"node(s) had untolerated taint","c":"node(s) had untolerated taint"},"Error":""}'
    )


async def test_rejections_that_eviction_may_cure_are_in_failed_nodes() -> None:
    async def reject(call: Cycle) -> Filtered:
        return Filtered(feasible=subset(call), failed={"a": "too full"}, unresolvable={"b": TAINT})

    async with serving(ScriptedCycles(on_filter=reject)) as edge:
        answer = (await edge.post("/filter", names_args("a", "b"))).json
    assert answer["FailedNodes"] == {"a": "too full"}
    assert answer["FailedAndUnresolvableNodes"] == {"b": TAINT}
    assert answer["NodeNames"] == []


async def test_nodes_are_answered_with_the_very_text_of_the_survivors() -> None:
    first = '{"metadata":{"name":"a","managedFields":[{"manager":"kubelet"}]},"spec":{},"x":1.50}'
    body = f'{{"Pod":{text(pod())},"Nodes":{{"metadata":{{}},"items":[{first},{text(node("b"))}]}},'
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        answer = await edge.post("/filter", body + '"NodeNames":null}')
    assert answer.body.startswith(
        b'{"Nodes":{"metadata":{},"items":[' + first.encode() + b']},"NodeNames":null,'
    )
    assert answer.json["FailedAndUnresolvableNodes"] == {"b": TAINT}


async def test_nodes_come_back_as_they_were_when_none_is_ruled_out() -> None:
    args = nodes_args("b", "a")
    async with serving() as edge:
        answer = (await edge.post("/filter", args)).json
    assert answer["Nodes"] == args["Nodes"]
    assert answer["NodeNames"] is None


async def test_no_surviving_node_is_an_empty_list_of_nodes() -> None:
    async def reject(call: Cycle) -> Filtered:
        return Filtered(feasible=subset(call), failed=dict.fromkeys(call.nodes.names, "no"))

    async with serving(ScriptedCycles(on_filter=reject)) as edge:
        answer = (await edge.post("/filter", nodes_args("a", "b"))).json
    assert answer["Nodes"] == {"metadata": {}, "items": []}


async def test_both_fields_are_answered_when_both_were_given() -> None:
    args = nodes_args("a", "b") | {"NodeNames": ["b", "a"]}
    async with serving(ScriptedCycles(on_filter=keep_first)) as edge:
        answer = (await edge.post("/filter", args)).json
        (call,) = edge.cycles.scheduling
    assert answer["NodeNames"] == ["b"]
    assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["b"]
    assert call.nodes.given is not None
    assert [given.manifest.name for given in call.nodes.given] == ["b", "a"]


async def test_both_fields_for_different_nodes_are_refused() -> None:
    args = nodes_args("a", "b") | {"NodeNames": ["a", "c"]}
    async with serving() as edge:
        answer = (await edge.post("/filter", args)).json
        assert edge.cycles.scheduling == []
    assert "both NodeNames and Nodes, but for different nodes" in answer["Error"]


async def test_neither_field_is_an_error_and_not_a_veto() -> None:
    async with serving() as edge:
        answer = (await edge.post("/filter", {"Pod": pod()})).json
    assert "neither NodeNames nor Nodes" in answer["Error"]


@pytest.mark.parametrize(
    ("args", "nodes", "names"),
    [
        (names_args(), None, []),
        (nodes_args(), {"metadata": {}, "items": []}, None),
        (nodes_args() | {"Nodes": {"items": None}}, {"metadata": {}, "items": []}, None),
    ],
    ids=["names", "nodes", "null items"],
)
async def test_an_empty_list_is_answered_with_an_empty_list(
    args: dict[str, object], nodes: object, names: object
) -> None:
    async with serving() as edge:
        answer = (await edge.post("/filter", args)).json
    assert answer["Error"] == ""
    assert answer["NodeNames"] == names
    assert answer["Nodes"] == nodes


async def test_a_name_that_is_there_twice_is_answered_twice() -> None:
    names = ["b", "a"] * 2500
    async with serving() as edge:
        answer = (await edge.post("/filter", names_args(*names))).json
        (call,) = edge.cycles.scheduling
    assert list(call.nodes.names) == names
    assert answer["NodeNames"] == names


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


@pytest.mark.parametrize("keys", [("pod", "nodes", "nodenames"), ("POD", "Nodes", "nodeNames")])
async def test_any_casing_is_understood_and_go_s_casing_answered(keys: tuple[str, ...]) -> None:
    pod_key, nodes_key, names_key = keys
    async with serving() as edge:
        args = {"Other": 1, pod_key: pod(), nodes_key: None, names_key: ["a"]}
        answer = (await edge.post("/filter", args)).json
    assert answer["NodeNames"] == ["a"]
    assert answer["Error"] == ""


async def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    first, last = text(pod("first")), text(pod("last"))
    body = f'{{"Pod":{first},"NodeNames":["x"],"pod":{last},"NodeNames":["a"]}}'
    async with serving() as edge:
        answer = (await edge.post("/filter", body)).json
        (call,) = edge.cycles.scheduling
    assert call.pod.name == "last"
    assert answer["NodeNames"] == ["a"]


async def test_names_that_need_escaping_survive() -> None:
    names = ['q"uote', "back\\slash", "<&>", "ü", "\u2028"]
    async with serving() as edge:
        answer = (await edge.post("/filter", names_args(*names))).json
        assert answer["NodeNames"] == names
        edge.cycles.on_filter = keep_first
        answer = (await edge.post("/filter", names_args(*names))).json
    assert answer["NodeNames"] == names[:1]
    assert list(answer["FailedAndUnresolvableNodes"]) == names[1:]


async def test_the_text_of_a_failed_call_reaches_the_user_as_it_is() -> None:
    async def fail(_: Cycle) -> Filtered:
        raise CallFailedError('filter service: "unavailable"')

    async with serving(ScriptedCycles(on_filter=fail)) as edge:
        answer = await edge.post("/filter", names_args("a"))
    assert answer.status == 200
    assert answer.json == {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": 'filter service: "unavailable"',
    }


async def test_an_unexpected_failure_shows_nothing_of_itself() -> None:
    async def fail(_: Cycle) -> Filtered:
        raise KeyError("secret")

    async with serving(ScriptedCycles(on_filter=fail)) as edge:
        answer = await edge.post("/filter", names_args("a"))
    assert answer.json["Error"] == "moorage: internal error in the gateway, see its log"


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
        for names in (["a", "b"], ["a"], ["b", "a"], ["a", "b", "c"], ["a", "b"], ["ab"]):
            answer = (await edge.post("/filter", names_args(*names))).json
            assert answer["NodeNames"] == names[:1]
            await edge.post("/prioritize", names_args(*names))
            assert list(edge.cycles.scheduling[-1].nodes.names) == names


async def test_arrays_of_the_same_length_are_told_apart() -> None:
    async with serving() as edge:
        for names in (["a", "b"], ["b", "a"], ["c", "d"]):
            assert (await edge.post("/filter", names_args(*names))).json["NodeNames"] == names


async def test_a_prioritize_call_has_the_survivors_of_the_filter_call() -> None:
    async def odd(call: Cycle) -> Filtered:
        return Filtered(feasible=subset(call, *range(1, len(call.nodes), 2)))

    names = [f"node-{index}" for index in range(5000)]
    async with serving(ScriptedCycles(on_filter=odd)) as edge:
        survivors = json.loads((await edge.post("/filter", names_args(*names))).body)["NodeNames"]
        await edge.post("/prioritize", names_args(*survivors))
        assert list(edge.cycles.scheduling[-1].nodes.names) == names[1::2]
