"""How many nodes are looked at for lists of pods, and for how long what is found holds."""

import asyncio

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.decisions.advice import AT_ONCE, Surveyor
from gateway.decisions.explaining import MOST_SURVEYED
from gateway.decisions.explanation import Survey
from gateway.decisions.log import DecisionLog
from moorage.models import Pod
from moorage.testing import make_node, make_pod
from tests.gateway.decisions.test_gaps import anybody, explainer

WAITING = Waiting(reason="Unschedulable", message="0/1 nodes are available: 1 Too many pods.")


class _Counting(Surveyor):
    """Notes for which pods it looks at nodes."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.pods: list[str] = []

    async def survey(self, pod: Pod) -> Survey:
        self.pods.append(pod.name)
        return await super().survey(pod)


async def test_a_list_looks_at_the_nodes_for_a_few_pods_however_busy_the_cluster_is() -> None:
    state = ClusterState()
    state.set_node(make_node("n"))
    pods = [make_pod(f"p{i}", requests={"cpu": f"{i}m"}) for i in range(3 * MOST_SURVEYED)]
    for pod in pods:
        state.set_pod(pod)

    surveyor, waiting = _Counting(state), {pod.uid: WAITING for pod in pods}
    explains = explainer(DecisionLog(pods=9, attempts=5), state, surveyor=surveyor, waiting=waiting)
    explained = await explains.listing(anybody)
    for number, pod in enumerate(pods):
        state.set_node(make_node("n", labels={"turn": str(number)}))
        assert await explained(pod) is not None
    assert len(surveyor.pods) == MOST_SURVEYED


async def test_what_is_found_while_the_cluster_changes_is_not_kept() -> None:
    state = ClusterState()
    for number in range(2 * AT_ONCE):
        state.set_node(make_node(f"n{number}"))
    surveyor, pod = Surveyor(state), make_pod("p", requests={"cpu": "1"})
    first = asyncio.create_task(surveyor.survey(pod))
    await asyncio.sleep(0)  # it has seen the first nodes
    state.set_node(make_node("n0", allocatable={"cpu": "0"}))
    await surveyor.survey(make_pod("other"))
    assert len((await first).usable) == 2 * AT_ONCE
    found = await surveyor.survey(pod)
    assert [each for each in found.by_obstacles if each], "n0 has no processor any more"
