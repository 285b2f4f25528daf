"""What prioritize, preempt and bind calls get back."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.cycle import BindCall, CallFailedError, Cycle, NodeSet, StandsByError
from tools.inprocess.edge import (
    Filtered,
    ScriptedCycles,
    go_request,
    names_args,
    nodes_args,
    pod,
    serving,
    subset,
    text,
)


def scoring(*scores: int) -> ScriptedCycles:
    async def prioritize(_: Cycle) -> Sequence[int]:
        return scores

    return ScriptedCycles(on_prioritize=prioritize)


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


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        (names_args("b", "a"), b'[{"Host":"b","Score":100},{"Host":"a","Score":1}]'),
        (nodes_args("b", "a"), b'[{"Host":"b","Score":100},{"Host":"a","Score":1}]'),
        (names_args('q"', "\\"), b'[{"Host":"q\\"","Score":100},{"Host":"\\\\","Score":1}]'),
    ],
    ids=["names", "whole nodes", "names that need escaping"],
)
async def test_the_answer_is_a_bare_list_of_hosts_and_whole_numbers(
    args: Any, answer: bytes
) -> None:
    async with serving(scoring(100, 1)) as edge:
        assert (await edge.post("/prioritize", args)).body == answer


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


@pytest.mark.parametrize("scores", [(1001, 1), (-1, 1), (1,), (1, 2, 3), (0, 1, 0), (7.5, 1)])
async def test_nonsense_is_no_opinion_and_counted(scores: Sequence[int]) -> None:
    async with serving(scoring(*scores)) as edge:
        answer = await edge.post("/prioritize", names_args("a", "b"))
        hidden = edge.count("moorage_extender_hidden_failures_total", result="internal")
    assert (answer.status, answer.body, hidden) == (200, b"[]", 1)


@pytest.mark.parametrize("body", ["", "{}", {"Pod": pod()}, names_args("a") | {"Pod": pod(uid="")}])
async def test_what_is_not_understood_is_no_opinion_and_counted(body: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/prioritize", body)
        hidden = edge.count("moorage_extender_hidden_failures_total", result="bad_request")
        assert edge.cycles.scheduling == []
    assert (answer.status, answer.body, hidden) == (200, b"[]", 1)
    assert answer.headers["moorage-problem"].startswith("moorage: the request was not understood: ")


META = {"n1": {"Pods": [{"UID": "v-1"}, {"UID": "v-2"}], "NumPDBViolations": 1}}


def meta_args(victims: Any) -> dict[str, Any]:
    return {"Pod": pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


def full_args(victims: Any) -> dict[str, Any]:
    return {"Pod": pod(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}


@pytest.mark.parametrize(
    ("args", "victims", "excluded"),
    [
        (meta_args(META), META, ["v-1", "v-2"]),
        (
            full_args({"n1": {"Pods": [pod("low", "v-1")], "NumPDBViolations": 0}}),
            {"n1": {"Pods": [{"UID": "v-1"}], "NumPDBViolations": 0}},
            ["v-1"],
        ),
        (
            {
                "pod": pod(),
                "nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "v-1"}], "numPDBViolations": 2}},
            },
            {"n1": {"Pods": [{"UID": "v-1"}], "NumPDBViolations": 2}},
            ["v-1"],
        ),
        (meta_args({}), {}, []),
        (
            meta_args({"n1": {"Pods": None, "NumPDBViolations": 0}}),
            {"n1": {"Pods": [], "NumPDBViolations": 0}},
            [],
        ),
    ],
    ids=["uids", "whole pods", "any casing", "no candidate", "no victim: never null"],
)
async def test_victims_come_back_in_their_order(args: Any, victims: Any, excluded: Any) -> None:
    async with serving() as edge:
        answer = await edge.post("/preempt", args)
        (call,) = edge.cycles.preempts
    assert answer.body.decode() == text({"NodeNameToMetaVictims": victims})
    assert (call.nodes.names, call.excluded_pods) == (list(victims), excluded)


async def test_dropped_candidates_are_left_out() -> None:
    async def keep_second(call: Cycle) -> NodeSet:
        return subset(call, 1)

    args = meta_args(META | {"n2": META["n1"]})
    async with serving(ScriptedCycles(on_preempt=keep_second)) as edge:
        answer = (await edge.post("/preempt", args)).json
    assert list(answer["NodeNameToMetaVictims"]) == ["n2"]


@pytest.mark.parametrize(
    "args",
    [
        meta_args(None),
        meta_args({"n1": None}),
        meta_args({"n1": {"Pods": [None], "NumPDBViolations": 0}}),
        meta_args({"n1": {"Pods": [{}]}}),
        meta_args([]),
        full_args({"n1": {"Pods": [pod(uid="")]}}),
        full_args({"n1": {"Pods": [None]}}),
        meta_args(META) | {"Pod": pod(uid="")},
        meta_args(META) | {"Pod": None},
        "not JSON",
    ],
)
async def test_what_is_not_understood_is_a_400_without_a_body(args: Any) -> None:
    async with serving() as edge:
        answer = await edge.post("/preempt", args)
        assert edge.cycles.preempts == []
    assert (answer.status, answer.body) == (400, b"")
    assert answer.headers["moorage-problem"].startswith("moorage: the request was not understood: ")


NOTHING = ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")


@pytest.mark.parametrize(
    ("failure", "result", "said"),
    [
        (CallFailedError('filter: "gone"'), "failed", 'filter: "gone"'),
        (TimeoutError(), "timeout", "moorage: the gateway did not decide in time"),
        (KeyError("secret"), "internal", "moorage: internal error in the gateway, see its log"),
    ],
)
async def test_a_failure_is_told_where_each_verb_has_room_for_it_and_counted(
    failure: Exception, result: str, said: str
) -> None:
    async def fail(_: object) -> Any:
        raise failure

    cycles = ScriptedCycles(on_filter=fail, on_prioritize=fail, on_preempt=fail, on_bind=fail)
    async with serving(cycles) as edge, edge.connect() as wire:  # which stays usable
        answers = [
            await wire.post(path, text(args).encode())
            for path, args in (
                ("/filter", names_args("a")),
                ("/prioritize/Fit", names_args("a")),
                ("/preempt", meta_args(META)),
                ("/bind", ARGS),
            )
        ]
        assert edge.count("moorage_extender_requests_total", verb="filter", result=result) == 1
        assert edge.count("moorage_extender_hidden_failures_total", result=result) == 1
    filtered, ranked, preempted, bound = answers
    assert (filtered.status, filtered.json) == (200, dict.fromkeys(NOTHING) | {"Error": said})
    assert (ranked.status, ranked.body) == (200, b"[]")
    assert (preempted.status, preempted.body) == (503, b"")
    assert (bound.status, bound.json) == (200, {"Error": said})


ARGS = {"PodName": "web-0", "PodNamespace": "default", "PodUID": "u-1", "Node": "n1"}


class SlowBind:
    def __init__(self) -> None:
        self.begun, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, _: BindCall) -> None:
        self.begun.set()
        await self.go.wait()
        self.done.set()


ODD_CASE = {"podname": "web-0", "PODNAMESPACE": "default", "podUID": "u-1", "node": "n1"}


@pytest.mark.parametrize("args", [ARGS, ODD_CASE], ids=["Go's casing", "any casing"])
async def test_a_bound_pod_is_an_empty_error(args: dict[str, str]) -> None:
    async with serving() as edge:
        answer = await edge.post("/bind", args)
        (call,) = edge.cycles.binds
    assert answer.body == b'{"Error":""}'
    assert (call.namespace, call.name, call.uid, call.node) == ("default", "web-0", "u-1", "n1")


@pytest.mark.parametrize("missing", list(ARGS))
async def test_every_field_is_needed(missing: str) -> None:
    async with serving() as edge:
        for args in (ARGS | {missing: ""}, {k: v for k, v in ARGS.items() if k != missing}):
            answer = await edge.post("/bind", args)
            assert missing in answer.json["Error"]
        assert edge.cycles.binds == []


async def test_a_bind_goes_on_when_its_caller_hangs_up_or_its_answer_is_due() -> None:
    bind = SlowBind()
    async with serving(ScriptedCycles(on_bind=bind)) as edge:
        async with edge.connect() as wire:
            await wire.send(go_request("POST", "/bind", text(ARGS).encode()))
            await bind.begun.wait()
        await edge.until_counted(verb="bind", result="cancelled")
        bind.go.set()
        await bind.done.wait()
    late = SlowBind()
    async with serving(ScriptedCycles(on_bind=late), http_timeout=0.1) as edge:
        answer = await edge.post("/bind", ARGS)
        assert answer.json == {"Error": "moorage: the gateway did not decide in time"}
        late.go.set()
        await late.done.wait()


async def test_a_stop_waits_for_binds_whose_callers_are_gone() -> None:
    bind = SlowBind()
    async with contextlib.AsyncExitStack() as stack:
        edge = await stack.enter_async_context(serving(ScriptedCycles(on_bind=bind)))
        async with edge.connect() as wire:
            await wire.send(go_request("POST", "/bind", text(ARGS).encode()))
            await bind.begun.wait()
        asyncio.get_running_loop().call_later(0.05, bind.go.set)
    assert bind.done.is_set()


async def test_a_gateway_that_stands_by_closes_the_connection() -> None:
    async def refuse(_: BindCall) -> None:
        raise StandsByError("another one decides")

    async with serving(ScriptedCycles(on_bind=refuse)) as edge, edge.connect() as wire:
        answer = await wire.post("/bind", json.dumps(ARGS).encode())
        assert answer.json == {"Error": "another one decides"}
        assert await wire.closed_by_server()
