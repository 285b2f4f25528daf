"""What preempt calls get back: victims by UID, never null."""

from typing import Any

import pytest

from gateway.cycle import CallFailedError, Cycle, NodeSet
from tools.inprocess.edge import ScriptedCycles, pod, serving, subset, text

META = {"n1": {"Pods": [{"UID": "v-1"}, {"UID": "v-2"}], "NumPDBViolations": 1}}


def meta_args(victims: Any) -> dict[str, Any]:
    return {"Pod": pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


def full_args(victims: Any) -> dict[str, Any]:
    return {"Pod": pod(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}


async def test_victims_come_back_in_their_order() -> None:
    async with serving() as edge:
        answer = await edge.post("/preempt", meta_args(META))
        (call,) = edge.cycles.preempts
    assert answer.body == (
        b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v-1"},{"UID":"v-2"}],"NumPDBViolations":1}}}'
    )
    assert call.nodes.names == ["n1"]
    assert call.excluded_pods == ["v-1", "v-2"]


async def test_whole_pods_are_answered_with_uids() -> None:
    given = {"n1": {"Pods": [pod("low", "v-1")], "NumPDBViolations": 0}}
    async with serving() as edge:
        answer = (await edge.post("/preempt", full_args(given))).json
        (call,) = edge.cycles.preempts
    assert answer == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v-1"}], "NumPDBViolations": 0}}
    }
    assert call.excluded_pods == ["v-1"]


async def test_dropped_candidates_are_left_out() -> None:
    async def keep_second(call: Cycle) -> NodeSet:
        return subset(call, 1)

    args = meta_args(META | {"n2": META["n1"]})
    async with serving(ScriptedCycles(on_preempt=keep_second)) as edge:
        answer = (await edge.post("/preempt", args)).json
    assert list(answer["NodeNameToMetaVictims"]) == ["n2"]


@pytest.mark.parametrize("victims", [{}, {"n1": {"Pods": None, "NumPDBViolations": 0}}])
async def test_nothing_is_ever_null(victims: Any) -> None:
    async with serving() as edge:
        answer = await edge.post("/preempt", meta_args(victims))
    assert answer.status == 200
    assert b"null" not in answer.body


async def test_any_casing_is_understood_below_the_top_too() -> None:
    given = {"n1": {"pods": [{"uid": "v-1"}], "numPDBViolations": 2}}
    async with serving() as edge:
        answer = (await edge.post("/preempt", {"pod": pod(), "nodeNameToMetaVictims": given})).json
    assert answer["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "v-1"}], "NumPDBViolations": 2}
    }


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


@pytest.mark.parametrize("failure", [CallFailedError("filter service"), TimeoutError(), KeyError()])
async def test_a_failure_is_a_503_without_a_body(failure: Exception) -> None:
    async def fail(_: Cycle) -> NodeSet:
        raise failure

    async with serving(ScriptedCycles(on_preempt=fail)) as edge, edge.connect() as wire:
        for _ in range(2):  # the connection stays usable
            answer = await wire.post("/preempt", text(meta_args(META)).encode())
            assert (answer.status, answer.body) == (503, b"")
