"""A decision says that it was made without measurements."""

import pytest

from tests.stack.stack import Stack, pod
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_dead_prometheus_is_in_the_decision_of_each_half(stack: Stack) -> None:
    names = ["n1", "n2"]
    await stack.create([node(name) for name in names])
    obj = pod("unseen", schedulerName="blind")
    assert (await stack.filter(obj, names))["NodeNames"] == names, "it lets them pass, unseen"
    await stack.prioritize(obj, names)

    decision = await stack.decision("unseen")

    (filtering,), (scoring,) = decision["filter"]["plugins"], decision["score"]["plugins"]
    for half in (filtering, scoring):
        assert half["plugin"] == "SafeOverload"
        assert half["note"].startswith(
            "2 of 2 nodes have no measurements (onMissing: neutral); "
            "cannot query Prometheus at http://127.0.0.1:1"
        )
    assert "failure" not in filtering
    assert "cannot query Prometheus" in scoring["failure"]


async def test_there_is_no_note_where_nothing_is_to_be_noted(stack: Stack) -> None:
    names = ["n1", "n2"]
    await stack.create([node(name, annotations={"mean-free-cpu": "4000"}) for name in names])
    obj = pod("seen", schedulerName="loaded")
    await stack.filter(obj, names)
    await stack.prioritize(obj, names)

    (scoring,) = (await stack.decision("seen"))["score"]["plugins"]

    assert scoring.keys() == {"plugin", "seconds", "version"}
