"""Nodes for rules: `moorage capacity` with an autoscaler that knows no rule."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from cli.capacity import RequestLimits, asking, control, nodes, running
from cli.capacity.cluster import ClusterView
from cli.capacity.running import HeldLease, run
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.capacity import PLACEHOLDER
from moorage_host.kube import KubeStatusError, connect
from tests.scenarios.karpenter import FakeKarpenter, definition, node_pool
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALONE = pytest.mark.embedded_alone
"""For what tests/e2e/autoscaler has with a real Karpenter on a real control plane."""

EXISTING, KEEP = "moorage.io/existing", "karpenter.sh/do-not-disrupt"


def hot(*names: str, cpu: str = "8") -> list[Object]:
    """Return nodes that the rule rejects."""
    return [node(name, cpu=cpu, annotations={"heated/hot": "true"}) for name in names]


def heated(name: str, cpu: str = "1", *, spec: Object | None = None, **steps: str) -> Object:
    """Return a pod of the rule; *steps* are its annotations `heated/...`."""
    made = pod(name, "heated", cpu, spec=spec)
    notes = {f"heated/{key.replace('_', '-')}": value for key, value in steps.items()}
    made["metadata"]["annotations"] = notes
    return made


def group() -> list[Object]:
    """Return three pods of the rule that need a node each, together."""
    labels = {"moorage.io/group": "train", "moorage.io/group-size": "3"}
    return [pod(f"train-{i}", "heated-gangs", "5", labels=labels) for i in range(3)]


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge new nodes at once, and notice soon that a controller was killed."""
    for module in (nodes, control):
        monkeypatch.setattr(module, "SETTLED_SECONDS", 2.0)
    for name in ("LABELS_SECONDS", "KEPT_SECONDS"):
        monkeypatch.setattr(nodes, name, 0.5)
    monkeypatch.setattr(control, "NOTES_SECONDS", 0.5)
    monkeypatch.setattr(asking, "REACTION_SECONDS", 1.0)
    monkeypatch.setattr(running, "LEASE_SECONDS", 2.0)


@asynccontextmanager
async def capacity(
    world: World, *, most: int = 100, per_namespace: int = 100, timeout: float = 60.0
) -> AsyncIterator[asyncio.Task[None]]:
    """Run the controller for as long as the block lasts."""
    options = GatewayOptions(admin=world.services.admin, kubeconfig=world.plane.kubeconfig("admin"))
    limits = RequestLimits(most=most, most_per_namespace=per_namespace, pause=0.5, timeout=timeout)
    task = asyncio.create_task(run(options, autoscaler="karpenter", limits=limits, interval=0.3))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Killed):
            await task


class Killed(BaseException):
    """What ends a controller as a signal would."""


@asynccontextmanager
async def karpenter(world: World, *pools: Object) -> AsyncIterator[FakeKarpenter]:
    """Run the double of Karpenter for as long as the block lasts."""
    client = await connect(world.plane.kubeconfig("admin"))
    fake = FakeKarpenter(client)
    try:
        async with fake.running(*(pools or (node_pool(),))):
            yield fake
    finally:
        await client.close()


async def placeholders(world: World) -> list[Object]:
    pods = (await world.read("/api/v1/pods"))["items"] or []
    return [each for each in pods if PLACEHOLDER in each["metadata"].get("labels", {})]


async def nothing_left(world: World) -> None:
    """Wait until there is no placeholder and no label of nodes that exist."""

    async def nothing() -> bool:
        nodes = (await world.read("/api/v1/nodes"))["items"] or []
        marked = any(EXISTING in each["metadata"].get("labels", {}) for each in nodes)
        return not marked and not await placeholders(world)

    await world.until(nothing)


async def capacity_of(world: World, name: str, text: str) -> None:
    """Wait until `explain` says this about a node for a pod."""

    async def shown() -> bool:
        found = await world.explanation(name)
        return text in found["capacity"] and text in found["reason"]

    await world.until(shown)


async def test_a_node_comes_for_a_pod_that_only_a_rule_keeps_waiting(world: World) -> None:
    await world.nodes(*hot("n1", "n2", "n3"))
    async with world.scheduler("heated"), karpenter(world) as added:
        await world.create(heated("p"))
        await world.condition("p", "Unschedulable")
        assert not added.added
        async with capacity(world):
            places = await world.bound("p")
            assert places["p"] == added.added[0]
            await nothing_left(world)
            kept = await world.read(f"/api/v1/nodes/{places['p']}")
            assert kept["metadata"]["annotations"][KEEP] == "true"
            assert await world.event("p", reason="NodeAsked") == "a node was asked for (Karpenter)"
    assert len(added.added) == 1


@ALONE
async def test_explain_says_how_far_a_request_is(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        added.boot_seconds = 3.0
        await world.create(heated("p"))
        await capacity_of(world, "p", " s ago (Karpenter, NodeClaim default-node0)")
        await capacity_of(world, "p", "node default-node0 was added for it, and is not used yet")
        await world.bound("p")
        pending = (await world.get("decisions/pending"))["items"]
        assert not [each for each in pending if each["pod"].startswith("default/capacity-")]


@ALONE
@pytest.mark.parametrize(
    ("pods", "needed"),
    [
        pytest.param([heated(f"p{i}") for i in range(20)], 3, id="twenty that fit three nodes"),
        pytest.param([heated(f"p{i}", "5") for i in range(5)], 5, id="five that fill a node each"),
        pytest.param(
            [
                {**each, "metadata": {**each["metadata"], "labels": {"app": "apart"}}}
                for each in (
                    heated(
                        f"p{i}",
                        spec={
                            "affinity": {
                                "podAntiAffinity": {
                                    "requiredDuringSchedulingIgnoredDuringExecution": [
                                        {
                                            "labelSelector": {"matchLabels": {"app": "apart"}},
                                            "topologyKey": "kubernetes.io/hostname",
                                        }
                                    ]
                                }
                            }
                        },
                    )
                    for i in range(3)
                )
            ],
            3,
            id="three that keep apart",
        ),
    ],
)
async def test_pods_get_at_most_a_node_more_than_they_need(
    world: World, pods: list[Object], needed: int
) -> None:
    await world.nodes(*hot("n1", "n2"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        await world.create(*pods)
        await world.bound(*(each["metadata"]["name"] for each in pods))
        await nothing_left(world)
    assert needed <= len(added.added) <= needed + 1


@ALONE
async def test_a_node_whose_devices_come_late_is_waited_for(world: World) -> None:
    gpu = "example.com/gpu"
    (n1,) = hot("n1")
    for each in n1["status"].values():
        each[gpu] = "2"
    made = [heated("p"), heated("q")]
    for each in made:
        amounts = {"cpu": "1", gpu: "1"}
        each["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {gpu: "1"}}
    await world.nodes(n1)
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        added.devices, added.boot_seconds = {gpu: "2"}, 3.0
        await world.create(made[0])
        await capacity_of(world, "p", "node default-node0 was added for it, and is not used yet")
        await world.create(made[1])
        await world.bound("p", "q")
        await nothing_left(world)
    assert len(added.added) == 1


@ALONE
async def test_pods_that_come_one_by_one_share_the_nodes(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        for i in range(6):
            await world.create(heated(f"p{i}", "3"))
            await world.bound(f"p{i}")
        await nothing_left(world)
    assert 3 <= len(added.added) <= 4


@ALONE
@pytest.mark.parametrize("apart", [0.0, 3.0])  # longer than the first one needs to be judged
async def test_a_group_gets_all_the_nodes_that_it_lacks_at_once(world: World, apart: float) -> None:
    await world.nodes(*hot("n1", cpu="16"))  # has room for all, or Karpenter adds nodes by itself
    async with world.scheduler("heated-gangs"), karpenter(world) as added, capacity(world):
        added.apart_seconds = apart
        await world.create(*group())
        await world.bound("train-0", "train-1", "train-2")
        await nothing_left(world)
        for each in ("train-0", "train-1", "train-2"):
            assert await world.events(each, "NewNodesRejected") == []
    assert len(added.added) == 3


@ALONE
async def test_a_group_that_lacks_a_node_for_too_long_gives_the_others_up(world: World) -> None:
    await world.nodes(*hot("n1", cpu="16"))
    async with world.scheduler("heated-gangs"), karpenter(world) as added:
        added.limit, added.consolidates = 2, True
        async with capacity(world, timeout=3.0):
            await world.create(*group())
            for each in ("train-0", "train-1", "train-2"):
                await capacity_of(world, each, "no node came in 3 s")

            async def gone() -> bool:
                return set(added.removed) == set(added.added)

            await world.until(gone)


async def test_the_zone_that_a_rule_wants_is_asked_for(world: World) -> None:
    zone = "topology.kubernetes.io/zone"
    pool = node_pool(requirements=[{"key": zone, "operator": "In", "values": ["a", "b", "c"]}])
    await world.nodes(node("n1", labels={zone: "a"}))
    async with world.scheduler("heated"), karpenter(world, pool) as added, capacity(world):
        await world.create(heated("p", cold_label=f"{zone}=b"))
        await world.bound("p")
    assert len(added.added) == 1


@ALONE
@pytest.mark.parametrize(
    ("made", "pool", "note"),
    [
        pytest.param(
            heated("p", never="true"),
            node_pool(),
            "no new node would help: the pod is not wanted (Heated)",
            id="a rule that says so",
        ),
        pytest.param(
            heated("p", cold_label="gpu=h100"),
            node_pool(labels={"gpu": "a100"}),
            "no new node would help: node is hot (Heated), on a node of NodePool default as well",
            id="a rule that rejects the node to come",
        ),
        pytest.param(
            heated("p"),
            node_pool(annotations={"heated/hot": "true"}),
            "no new node would help: node is hot (Heated), on a node of NodePool default as well",
            id="a NodePool with an annotation",
        ),
        pytest.param(
            heated("p", spec={"nodeSelector": {"disk": "ssd"}}),
            node_pool(),
            "no new node would help: Karpenter makes none that the pod's selector, affinity, "
            "tolerations and requests allow",
            id="a NodePool without the label",
        ),
        pytest.param(
            heated("p"),
            node_pool(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]),
            "no new node would help: Karpenter makes none that the pod's selector, affinity, "
            "tolerations and requests allow",
            id="a NodePool with a taint",
        ),
    ],
)
async def test_nothing_is_asked_for_where_no_new_node_would_help(
    world: World, made: Object, pool: Object, note: str
) -> None:
    annotations = {"heated/hot": "true"}
    await world.nodes(node("n1", labels={"disk": "ssd"}, annotations=annotations))
    async with world.scheduler("heated"), karpenter(world, pool) as added, capacity(world):
        await world.create(made)
        assert await world.event("p", reason="NoNodeHelps") == note
        assert (await world.explanation("p"))["capacity"] == note
        assert not await placeholders(world)
    assert not added.added


@ALONE
async def test_after_two_new_nodes_that_are_rejected_too_a_pod_waits(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        added.consolidates = True
        await world.create(heated("p", reject="default-node"))
        note = "two new nodes were rejected too: node is hot"
        assert await world.event("p", reason="NewNodesRejected") == note
        await capacity_of(world, "p", note)

        async def gone() -> bool:
            return added.removed == added.added

        await world.until(gone)
        await world.create(heated("other"))
        await world.bound("other")
        assert len(added.added) == 3

        async def one() -> bool:
            pods = [each["metadata"]["annotations"] for each in await placeholders(world)]
            return pods == [{"moorage.io/pod": "p"}]

        await world.until(one)
        (await world.request("DELETE", f"{PODS}/p")).check()
        await nothing_left(world)


async def test_consolidation_takes_the_node_when_its_pods_have_gone_and_not_before(
    world: World,
) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        added.consolidates = True
        await world.create(heated("p"), heated("q"))
        await world.bound("p", "q")
        await nothing_left(world)
        (await world.request("DELETE", f"{PODS}/p")).check()
        for _ in range(2):  # rounds of the controller and of Karpenter pass
            await world.create(heated("r", "5"))
            await world.bound("r")
            (await world.request("DELETE", f"{PODS}/r")).check()
        assert not added.removed
        assert (await world.places())["q"] == added.added[0]
        (await world.request("DELETE", f"{PODS}/q")).check()

        async def gone() -> bool:
            return added.removed == added.added

        await world.until(gone)


@ALONE
async def test_limits_of_the_node_pool_end_a_request(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added:
        added.limit = 0
        async with capacity(world, timeout=2.0):
            await world.create(heated("p"))
            note = await world.event("p", reason="NodeNotAdded")
            assert note.startswith("no node came in 2 s (Karpenter: Failed to schedule pod")
            added.limit = 1
            await world.bound("p")
            await nothing_left(world)


@ALONE
async def test_a_pod_that_is_deleted_leaves_nothing_behind(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        added.boot_seconds = 1.0
        added.consolidates = True
        await world.create(heated("p"))

        async def asked() -> bool:
            return bool(await placeholders(world))

        await world.until(asked)
        (await world.request("DELETE", f"{PODS}/p")).check()
        await nothing_left(world)

        async def gone() -> bool:
            return added.removed == added.added

        await world.until(gone)


@ALONE
@pytest.mark.parametrize(
    ("write", "before"),
    [(1, True), (2, False), (3, False), (4, True), (5, False), (6, False)],
)
async def test_a_controller_that_is_killed_at_a_write_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, write: int, *, before: bool
) -> None:
    count = 0

    def killing(method: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            is_last = count == write
            if is_last and before:
                raise Killed
            result = await method(*args, **more)
            if is_last:
                raise Killed
            return result

        return called

    async def lost(_: HeldLease) -> None:
        """A killed process releases nothing."""

    await world.nodes(*hot("n1", "n2"))
    async with world.scheduler("heated"), karpenter(world) as added:
        await world.create(heated("p"))
        with monkeypatch.context() as patched:
            for name in ("create", "write", "delete", "mark"):
                patched.setattr(ClusterView, name, killing(getattr(ClusterView, name)))
            patched.setattr(HeldLease, "release", lost)
            async with capacity(world) as task:
                await world.until(lambda: _ended(task))
        async with capacity(world):
            await world.bound("p")
            await nothing_left(world)
    assert len(added.added) == 1


async def _ended(task: asyncio.Task[None]) -> bool:
    return task.done()


@ALONE
async def test_of_two_controllers_one_works(world: World) -> None:
    await world.nodes(*hot("n1"))
    scheduler, adding = world.scheduler("heated"), karpenter(world)
    async with scheduler, adding as added, capacity(world), capacity(world):
        await world.create(*(heated(f"p{i}", "5") for i in range(3)))
        await world.bound("p0", "p1", "p2")
        await nothing_left(world)
    assert len(added.added) == 3


@ALONE
async def test_a_quota_that_refuses_a_placeholder_is_said(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = 'pods "capacity-x" is forbidden: exceeded quota: small'

    async def refused(_: ClusterView, manifest: Object) -> None:
        raise KubeStatusError("POST pods", status=403, reason="Forbidden", message=refusal)

    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        monkeypatch.setattr(ClusterView, "create", refused)
        await world.create(heated("p"))
        note = await world.event("p", reason="NodeNotAsked", text="quota")
        assert note == f"no node was asked for: {refusal}"
        monkeypatch.undo()
        await world.bound("p")
    assert len(added.added) == 1


@ALONE
async def test_a_namespace_with_very_many_pods_asks_for_few_nodes_at_a_time(world: World) -> None:
    open_at_once = []
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added:
        added.boot_seconds = 0.5
        await world.create(*(heated(f"p{i}", "3") for i in range(12)))
        async with capacity(world, per_namespace=3):

            async def all_bound() -> bool:
                open_at_once.append(len(await placeholders(world)))
                places = await world.places()
                return all(places.get(f"p{i}") for i in range(12))

            await world.until(all_bound)
            await nothing_left(world)
    assert max(open_at_once) <= 3
    assert 6 <= len(added.added) <= 7


async def test_without_karpenter_it_waits_for_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), capacity(world):
        folder = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for kind in ("nodepools", "nodeclaims"):
            await world.request("DELETE", f"{folder}/{kind}.karpenter.sh")
        await world.create(heated("p"))
        shown = ""

        async def says(text: str) -> bool:
            nonlocal shown
            shown += capsys.readouterr().err
            return text in shown

        await world.until(lambda: says("does not serve karpenter.sh"))
        for kind in ("NodePool", "NodeClaim"):
            (await world.request("POST", folder, definition(kind, "v1beta1"))).check()
        await world.until(lambda: says("serves karpenter.sh/v1beta1, not v1"))
        for kind in ("nodepools", "nodeclaims"):
            await world.request("DELETE", f"{folder}/{kind}.karpenter.sh")
        assert not await placeholders(world)
        async with karpenter(world):
            await world.bound("p")
