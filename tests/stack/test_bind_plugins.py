"""Bind plugins through all processes."""

import json

import pytest

from tests.stack.stack import Stack, pod
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_pod_carries_the_decision_if_its_profile_says_so(stack: Stack) -> None:
    await stack.create([node("n1")], [pod("p")])
    await stack.all_bound(1)
    annotations = (await stack.pods())["p"]["metadata"]["annotations"]
    written = json.loads(annotations["moorage.io/decision"])
    decision = await stack.decision("p")
    assert written == {
        "winner": {"node": "n1"},
        "reason": "kube-scheduler offered one node only",
        "nodes": 1,
        "feasible": 1,
        "policyRevision": decision["policyRevision"],
        "generation": decision["generation"],
    }
