"""Gang places groups whole or not at all."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import structs

from moorage import NodeManifest, Pod, Rejection
from moorage.groups import POD_GROUPS, PODS, PODS_OF_POD_GROUPS, group_members
from moorage.models.pod_spec import SchedulingGate
from moorage.rules.device_classes import PREFIX
from moorage.testing import make_node, make_nodes, make_pod, record_retries, run_group, time_is
from services.filter.plugins.gang import Gang

GPU = "example.com/gpu"
Object = dict[str, Any]
LABELS = {"moorage.io/group": "train", "moorage.io/group-size": "2"}


def gpus(name: str, count: int, **labels: str) -> NodeManifest:
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10", GPU: str(count)}
    return make_node(name, allocatable=allocatable, labels=labels)


def member(name: str, group: str = "train", size: str = "4", **labels: str) -> Pod:
    labels = {"moorage.io/group": group, "moorage.io/group-size": size, **labels}
    return make_pod(name, labels=labels, requests={GPU: "1"})


def members(count: int, group: str = "train", **more: str) -> list[Pod]:
    return [member(f"{group}-{i}", group, str(count), **more) for i in range(count)]


def test_a_group_that_fits_gets_a_node_for_each_pod() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 3), gpus("n2", 1), waiting=others)
    assert placed == {"train-0": "n1", "train-1": "n1", "train-2": "n1", "train-3": "n2"}


def test_of_a_group_that_does_not_fit_no_pod_gets_a_node() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 2), gpus("n2", 1), waiting=others)
    assert placed == Rejection("pods of the group found no nodes", unresolvable=False)


def test_a_group_waits_for_pods_that_are_missing() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 8), waiting=others[:2])
    assert placed == Rejection("pods of the group are missing", unresolvable=False)


def test_a_pod_without_a_group_is_none_of_its_business() -> None:
    assert run_group(Gang(), make_pod("single"), gpus("n1", 1)) is None


def gated(pod: Pod) -> Pod:
    gates = (SchedulingGate(name="moorage.io/group"),)
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=gates))


def in_profile(pod: Pod, name: str) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=name))


MISSING = "pods of the group are missing"
BAD_SIZE = "label moorage.io/group-size of the group is not a number from 1 on"


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([member("a", size="2"), gated(member("b", size="2"))], MISSING),
        (
            [member("a", size="2"), member("b", size="3"), member("c", size="3")],
            "pods of the group say different sizes",
        ),
        ([member("a", size="two"), member("b", size="2")], BAD_SIZE),
        ([member("a", size="0")], BAD_SIZE),
        ([member("a", size="999999999")], MISSING),
        (
            [member("a", size="2"), in_profile(member("b", size="2"), "another")],
            "pods of the group have different schedulerNames",
        ),
        (
            [make_pod("a", labels={"scheduling.x-k8s.io/pod-group": "a"})],
            "PodGroup of the group does not exist",
        ),
        (
            [member("a", "g", "2"), make_pod("b", labels={"scheduling.x-k8s.io/pod-group": "g"})],
            "pods of the group name it by moorage.io/group and by scheduling.x-k8s.io/pod-group",
        ),
    ],
)
def test_a_group_that_is_wrong_waits_and_says_why(pods: list[Pod], reason: str) -> None:
    first, *others = pods
    placed = run_group(Gang(), first, gpus("n1", 8), waiting=others)
    assert placed == Rejection(reason, unresolvable=False)


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {"minMember": None}}])
def test_a_pod_group_without_a_size_begins_with_one_pod(spec: dict[str, Any]) -> None:
    metadata = {"name": "g", "namespace": "default"}
    alone = make_pod("a", labels={"scheduling.x-k8s.io/pod-group": "g"})
    objects = {POD_GROUPS: [{**spec, "metadata": metadata}]}
    placed = run_group(Gang(), alone, gpus("n1", 8), objects=objects)
    assert placed == {"a": "n1"}


def test_one_name_in_two_namespaces_is_two_groups() -> None:
    first, *others = members(2)
    theirs = structs.replace(
        others[0], metadata=structs.replace(others[0].metadata, namespace="theirs", uid="theirs")
    )
    placed = run_group(Gang(), first, gpus("n1", 8), waiting=[theirs])
    assert placed == Rejection(MISSING, unresolvable=False)


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"moorage.io/group": "train"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
EVEN = [
    {
        "labelSelector": {"matchLabels": {"moorage.io/group": "train"}},
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
    }
]


@pytest.mark.parametrize("spec", [{"affinity": APART}, {"topologySpreadConstraints": EVEN}])
def test_kube_scheduler_finds_no_fault_with_how_members_lie(spec: Object) -> None:
    first, *others = (
        msgspec.convert(
            {
                "metadata": {"name": name, "uid": name, "namespace": "default", "labels": LABELS},
                "spec": {"containers": [{"name": "c"}], **spec},
            },
            Pod,
        )
        for name in ("a", "b")
    )
    nodes = [gpus(name, 8, **{"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    assert run_group(Gang(), first, *nodes, waiting=others) == {"a": "n1", "b": "n2"}


@pytest.mark.parametrize(
    ("device_class", "fits"), [(f"{PREFIX}gpu", True), ("example.com/other", False)]
)
def test_a_resource_that_bears_the_name_of_a_device_class_is_not_missed(
    device_class: str, fits: bool
) -> None:
    labels = {"moorage.io/group": "train", "moorage.io/group-size": "1"}
    pod = make_pod("a", labels=labels, requests={device_class: "1"})
    assert isinstance(run_group(Gang(), pod, gpus("n1", 1)), dict) == fits


def test_pods_at_their_gate_are_placed_when_one_of_them_is_asked_about() -> None:
    first, *others = map(gated, members(2))
    assert isinstance(run_group(Gang(), first, gpus("n1", 8), waiting=others), dict)


def test_a_min_count_is_enough_to_begin_and_more_are_placed_if_they_fit() -> None:
    few = {"moorage.io/group-min-count": "2"}
    first, *others = members(4, **few)
    assert run_group(Gang(), first, gpus("n1", 3), waiting=others) == {
        "train-0": "n1",
        "train-1": "n1",
        "train-2": "n1",
    }
    alone = isinstance(run_group(Gang(), first, gpus("n1", 1), waiting=others), Rejection)
    assert alone


def test_all_pods_of_a_group_are_in_the_first_rack_that_has_room() -> None:
    racks = [gpus(f"n{i}", 1 if i < 4 else 2, rack=f"r{i // 2}") for i in range(6)]
    first, *others = members(4)
    placed = run_group(Gang(Gang.Args(topology_key="rack")), first, *racks, waiting=others)
    assert isinstance(placed, dict)
    assert set(placed.values()) == {"n4", "n5"}


def test_a_pod_that_comes_again_joins_its_group_where_that_is() -> None:
    racks = [gpus(f"n{i}", 2, rack=f"r{i // 2}") for i in range(4)]
    first, *others = members(3)
    running = [
        structs.replace(pod, spec=structs.replace(pod.spec, node_name="n3")) for pod in others
    ]
    placed = run_group(Gang(Gang.Args(topology_key="rack")), first, *racks, pods=running)
    assert placed == {"train-0": "n2"}


def test_ranks_follow_the_order_of_nodes() -> None:
    nodes = [gpus(f"n{i}", 1, host=f"h{9 - i}") for i in range(4)]
    ranked = [member(f"train-{i}", **{"moorage.io/group-rank": str(i)}) for i in range(4)]
    first, *others = ranked
    placed = run_group(Gang(Gang.Args(order_key="host")), first, *nodes, waiting=others)
    assert placed == {"train-0": "n3", "train-1": "n2", "train-2": "n1", "train-3": "n0"}


def manifest(name: str, group: str, size: str, *, gated: bool = False, node: str = "") -> Object:
    """Return a pod as the API server has it; groups are as old as their names sort."""
    labels = {"moorage.io/group": group, "moorage.io/group-size": size}
    created = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z"}[group]
    metadata = {"namespace": "default", "name": name, "uid": name, "labels": labels}
    gates = [{"name": "example.com/later"}] if gated else []
    spec = {"containers": [{"name": "c"}], "schedulingGates": gates, "nodeName": node}
    return {"metadata": {**metadata, "creationTimestamp": created}, "spec": spec}


def told(name: str, phase: str, node: str = "", index: str = "") -> Object:
    """Return a pod of group a, of four, in a phase; *index* is that of its Job."""
    obj = manifest(name, "a", "4", node=node)
    if index:
        obj["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = index
    return {**obj, "status": {"phase": phase}}


RUNNING = tuple(told(f"a-{i}", "Running", "n1", str(i)) for i in range(3))
NEW = told("new", "Pending", index="3")


@pytest.mark.parametrize(
    ("pods", "members", "least"),
    [
        ((*RUNNING, NEW), 4, 4),
        ((*RUNNING[:2], NEW), 3, 4),
        ((*RUNNING[:2], NEW, told("ended", "Succeeded", "n1", "2")), 3, 3),
        ((*RUNNING[:2], NEW, told("ended", "Failed", "n1", "2")), 3, 3),
        ((*RUNNING[:2], NEW, told("ended", "Failed", "", "2")), 3, 4),
        ((*RUNNING[:2], NEW, told("ended", "Failed", "n1", "3")), 3, 4),
        ((*RUNNING, NEW, told("ended", "Failed", "n1", "3")), 4, 4),
        ((NEW, *(told(f"ended-{i}", "Succeeded", "n1", str(i)) for i in range(3))), 1, 1),
        ((NEW, *(told(f"ended-{i}", "Failed", "n1", str(i)) for i in range(4))), 1, 4),
        ((told("new", "Pending"), *(told(f"x{i}", "Succeeded", "n1") for i in range(9))), 1, 1),
    ],
)
async def test_members_that_have_ended_count_as_placed(
    pods: tuple[Object, ...], members: int, least: int
) -> None:
    queue = Queue(*pods)
    await queue.plugin.start()
    new = next(pod for pod in group_members(queue.nodes)["default", "a"] if pod.name == "new")
    group = queue.plugin.group(new, queue.nodes)
    assert group is not None
    assert (len(group.members), group.min_count, group.problem) == (members, least, "")


class Queue:
    """Groups that wait, of which Gang is asked about one pod after another."""

    def __init__(self, *manifests: Object) -> None:
        objects = {PODS: manifests, PODS_OF_POD_GROUPS: [], POD_GROUPS: []}
        self.nodes = make_nodes(make_node("n1"), objects=objects)
        self.plugin = Gang()

    async def ahead(self, *tried: str) -> list[list[str]]:
        """Try pods at seconds, as NAME@SECOND; return members of the groups ahead of the last."""
        await self.plugin.start()
        pods = {pod.name: pod for pods in group_members(self.nodes).values() for pod in pods}
        group = None
        for name, second in (each.split("@") for each in tried):
            with time_is(datetime(2026, 1, 3, tzinfo=UTC) + timedelta(seconds=int(second))):
                group = self.plugin.group(pods[name], self.nodes)
        assert group is not None
        return [[member.name for member in each.members] for each in group.ahead]


async def ahead_of_the_younger(*older: Object) -> list[list[str]]:
    """Return the members of groups ahead of group b, after one of group a was tried."""
    return await Queue(*older, manifest("b-0", "b", "1")).ahead("a-0@0", "b-0@1")


async def test_a_group_that_has_waited_for_its_time_lets_others_go_first_for_as_long() -> None:
    groups = manifest("a-0", "a", "1"), manifest("b-0", "b", "1")
    tries = [f"a-0@{second}" for second in range(0, 50, 10)]
    assert await Queue(*groups).ahead(*tries, "b-0@50") == [["a-0"]]
    tries += ["b-0@50", "a-0@60"]
    assert await Queue(*groups).ahead(*tries) == [["b-0"]]
    assert await Queue(*groups).ahead(*tries, "b-0@61") == []
    tries += ["b-0@100", "a-0@110", "b-0@111", "a-0@121"]
    assert await Queue(*groups).ahead(*tries) == []


async def test_an_older_group_that_was_tried_is_ahead() -> None:
    older = manifest("a-0", "a", "2"), manifest("a-1", "a", "2")
    assert await ahead_of_the_younger(*older) == [["a-0", "a-1"]]


async def test_groups_that_came_together_take_turns() -> None:
    groups = manifest("a-0", "a", "1"), manifest("b-0", "b", "1")
    tries = ["a-0@0", "b-0@1", "a-0@50", "b-0@51"]
    assert await Queue(*groups).ahead(*tries) == [["a-0"]]
    for second in (62, 100, 119):
        assert await Queue(*groups).ahead(*tries, f"a-0@{second}") == [["b-0"]]
        tries += [f"a-0@{second}", f"b-0@{second}"]
    assert await Queue(*groups).ahead(*tries, "b-0@122") == [["a-0"]]


async def test_pods_at_a_gate_keep_no_room_from_younger_groups() -> None:
    older = manifest("a-0", "a", "2"), manifest("a-1", "a", "2", gated=True)
    assert await ahead_of_the_younger(*older) == [["a-0"]]  # too few: it does not fit


async def test_a_group_that_runs_is_not_ahead() -> None:
    older = manifest("a-0", "a", "2", node="n1"), manifest("a-1", "a", "2", node="n1")
    assert await ahead_of_the_younger(*older) == []


def test_a_group_that_is_too_large_is_not_tried() -> None:
    first, *others = members(513)
    placed = run_group(Gang(), first, gpus("n1", 600), waiting=others)
    assert placed == Rejection("the group has more than 512 pods", unresolvable=False)


async def test_a_complete_group_is_tried_again_once_also_by_an_instance_that_comes_later() -> None:
    """After a reload nobody knows that a group was incomplete when its pods were rejected."""
    queue = Queue(manifest("a-0", "a", "2"), manifest("a-1", "a", "2"))
    reasons = record_retries(queue.plugin)
    await queue.ahead("a-1@0", "a-0@1")
    assert reasons == ["a group is complete"]
    waiting = Queue(manifest("a-0", "a", "2"))
    reasons = record_retries(waiting.plugin)
    await waiting.ahead("a-0@0")
    assert reasons == []
