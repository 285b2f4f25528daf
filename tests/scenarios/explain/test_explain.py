"""The first line of `moorage explain` names what decided, whatever it was."""

import asyncio
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.cli.support import ran
from tests.scenarios.explain.asking import Record, explained, headline, named, until_headline
from tests.scenarios.explain.conftest import EXPLAINED
from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import binding, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

OUTVOTED = "kube-scheduler's own scores outvoted Moorage's:"
NAMES = ("n1", "n2", "n3", "n4")


def all_but(*names: str, reason: str = "no") -> dict[str, str]:
    return {name: reason for name in NAMES if name not in names}


async def test_bound_pods(world: World, record_property: Record) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered", "colocated", "moorage", "fitting"):
        run = {"tekton.dev/pipelineRun": "a"}
        await world.create(
            pod("only", reject=all_but("n2")),
            pod("best", score={"n3": 100, "n1": 40}),
            pod("alike"),
            pod("claimed", "colocated", labels=run),
            pod("unscored", "fitting"),
            pod("failing-score", score={"n1": "no number"}, reject=all_but("n1", "n2")),
        )
        await world.bound("only", "best", "alike", "claimed", "unscored")
        places = await world.places()
        assert await headline(world, "only") == (
            "only is on n2: one node of 4 was left: Steered rejected 3 of 4: no"
        )
        assert await headline(world, "best") == (
            "best is on n3: Moorage prefers n3 to n1, 100 to 40: Steered +60"
        )
        alike = places["alike"]
        assert await headline(world, "alike") == (
            f"alike is on {alike}: kube-scheduler chose {alike} of the nodes with the best total"
        )
        claimed, unscored = places["claimed"], places["unscored"]
        assert await headline(world, "claimed") == (
            f"claimed is on {claimed}: {claimed}, the best of 4 feasible nodes, was claimed for "
            "OneNodePerPipelineRun"
        )
        assert await headline(world, "unscored") == (
            f"unscored is on {unscored}: kube-scheduler chose among 4 nodes: Moorage gave no scores"
        )
        assert await headline(world, "only", "n1") == (
            "only is not on n1 but on n2: Steered rejected it: no; evicting pods would not help"
        )
        other = "n2" if places["alike"] == "n3" else "n3"
        assert (await headline(world, "alike", other)).startswith(
            f"alike is not on {other} but on {places['alike']}: its total is 0, as that of n"
        )
        assert await headline(world, "best", "n1") == (
            "best is not on n1 but on n3: it is Moorage's number 2, 40; n3 has 100"
        )
        assert await headline(world, "best", "n3") == (
            "best is on n3: Moorage prefers n3 to n1, 100 to 40: Steered +60"
        )
    record_property(EXPLAINED, 5)


def preferring(name: str) -> Object:
    """Have kube-scheduler's own scores prefer a node."""
    expression = {"key": "name", "operator": "In", "values": [name]}
    term = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"nodeAffinity": preferred}}


async def test_ties_and_votes(world: World, record_property: Record) -> None:
    await world.nodes(*(node(name, labels={"name": name}) for name in ("n1", "n2", "n3")))
    close = {"n1": 90.2, "n2": 90.4}
    async with world.scheduler("steered", weight=1):
        await world.create(
            pod("equal", score={"n1": 70, "n2": 70}, spec=preferring("n2")),
            pod("rounded", score=close, spec=preferring("n2")),
            pod("rounded-down", score=close, spec=preferring("n1")),
            pod("outvoted", score={"n1": 51, "n2": 50}, spec=preferring("n2")),
            pod("outvoted-far", score={"n1": 10, "n2": 9}, spec=preferring("n3")),
        )
        await world.bound()
        count = await named(
            world,
            {
                "equal": "is on n2: kube-scheduler chose n2 of the nodes with the best total",
                "rounded": "is on n2: n2 is tied with 1 other after rounding to 100 steps",
                "rounded-down": "is on n1: kube-scheduler chose n1, 90.2, by its own scores or by "
                "lot: after rounding it is as good as n2, 90.4",
                "outvoted": f"is on n2: {OUTVOTED} it chose n2, 50, over n1, 51, a lead of 1 x 10",
                "outvoted-far": f"is on n3: {OUTVOTED} it chose n3, 0, over n1, 10, a lead of 10 ",
            },
        )
    record_property(EXPLAINED, count)


async def test_pods_that_no_scheduler_of_ours_decided_about(
    world: World, record_property: Record
) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered", "others"):
        gates = {"schedulingGates": [{"name": "example.com/quota"}]}
        (hand,) = await world.create(pod("by-hand", "nobody"))
        await world.create(
            pod("gated", spec=gates),
            pod("nobody", "nobody-serves-this"),
            pod("other", "others"),
            pod("given", spec={"nodeName": "n1"}),
        )
        path = f"{PODS}/by-hand/binding"
        bound = binding("by-hand", "n2", uid=hand["metadata"]["uid"])
        (await world.request("POST", path, bound)).check()
        await world.bound("other", "by-hand", "given")
        assert await headline(world, "gated") == (
            "gated is pending: it waits for its scheduling gates: example.com/quota"
        )
        line = await headline(world, "nobody")
        assert line.startswith(
            "nobody is pending: no scheduler has tried it: its schedulerName is "
            "nobody-serves-this, which no profile serves"
        )
        place = (await world.places())["other"]
        assert (await headline(world, "other")).startswith(
            f"other is on {place}: others bound it; Moorage has no decision about it: its "
            "schedulerName is others, which no profile serves"
        )
        assert await headline(world, "given") == (
            "given is on n1: it was created with a nodeName, so no scheduler was asked"
        )
        assert (await headline(world, "by-hand")).startswith(
            "by-hand is on n2: Moorage has no decision about it: its schedulerName is nobody"
        )
    record_property(EXPLAINED, 5)


async def test_pending_pods(world: World, record_property: Record) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"), node("n2"), node("n3"))
    async with world.scheduler("steered", "colocated"):
        reasons = {"n1": "too hot", "n2": "no slice", "n3": "no slice"}
        await world.create(
            pod("in-tree", cpu="100"),
            pod("rejected", reject=reasons),
            pod("both", cpu="2", reject={"n2": "no slice", "n3": "no slice"}),
            pod("selecting", spec={"nodeSelector": {"disk": "ssd"}}),
            pod("failing", fail="no license"),
        )
        for name in ("in-tree", "rejected", "both", "selecting"):
            await world.condition(name, "Unschedulable")
        await world.condition("failing", "SchedulerError")

        assert await headline(world, "in-tree") == (
            "in-tree is pending: none of 3 nodes suits it: 3 Insufficient cpu (kube-scheduler)"
        )
        assert await headline(world, "rejected") == (
            "rejected is pending: none of 3 nodes suits it: 2 no slice (Moorage Steered), "
            "1 too hot (Moorage Steered)"
        )
        assert await headline(world, "both") == (
            "both is pending: none of 3 nodes suits it: 2 no slice (Moorage Steered), "
            "1 Insufficient cpu (kube-scheduler)"
        )
        assert (await headline(world, "selecting")).startswith(
            "selecting is pending: none of 3 nodes suits it: 3 node(s) didn't match Pod's node "
            "affinity/selector (kube-scheduler)"
        )
        assert (await headline(world, "failing")).startswith(
            "failing is pending: the attempt failed: "
        )
        assert "no license" in await headline(world, "failing")
        assert (await explained(world, "in-tree")).next[0] == (
            "free cpu on a node, add a node, or lower the pod's requests of cpu"
        )
        assert await headline(world, "in-tree", "n1") == (
            "in-tree is not on n1: kube-scheduler rejected it before Moorage was asked: "
            "Insufficient cpu"
        )
        assert await headline(world, "both", "n1") == (
            "both is not on n1: kube-scheduler rejected it before Moorage was asked: "
            "Insufficient cpu"
        )
    record_property(EXPLAINED, 5)


async def test_a_pod_that_waits_for_its_victims(world: World, record_property: Record) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"))
    async with world.scheduler("steered"):
        await world.create(pod("small", cpu="900m", finalizers=("example.com/slow",)))
        await world.bound("small")
        await world.create(pod("urgent", cpu="800m", spec={"priorityClassName": "urgent"}))
        await until_headline(world, "urgent", "it is to run on n1 once the pods that")
    record_property(EXPLAINED, 1)


async def test_a_bind_that_fails(world: World, record_property: Record) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered"):
        world.proxy.before.clear()
        await world.create(pod("held"))
        await until_headline(world, "held", "is pending: the bind to n")
        world.proxy.before.set()
        await world.bound("held")
    record_property(EXPLAINED, 1)


async def test_a_pod_decided_by_a_gateway_that_is_gone(
    world: World, record_property: Record
) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered"):
        await world.create(pod("old"))
        place = (await world.bound("old"))["old"]
        gateway = world.services.programs["gateway"]
        await gateway.stop()
        assert "the gateway's admin port cannot be asked" in await headline(world, "old")
        await gateway.start()
        await until_headline(
            world, "old", f"it is bound to {place}; Moorage was not asked, or the gateway restarted"
        )
    record_property(EXPLAINED, 2)


async def test_the_command(world: World, tmp_path: Path) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered"):
        await world.create(pod("p", reject=all_but("n2")))
        await world.bound("p")
    admin = ("--admin", world.services.admin)
    cluster = ("--kubeconfig", str(world.plane.kubeconfig("admin")))

    async def run(*arguments: str) -> tuple[int, str]:
        return await ran("explain", *arguments, *admin, *cluster)

    (status, text), (_, as_json), (_, as_yaml), missing, *named = await asyncio.gather(
        run("default/p"),
        run("default/p", "-o", "json"),
        run("default/p", "-o", "yaml"),
        run("default/nobody"),
        *(run(*words) for words in (("p",), ("pod/p", "-n", "default"), ("po/p",))),
    )
    expected = "default/p is on n2: one node of 4 was left: Steered rejected 3 of 4: no"
    assert (status, text.splitlines()[0]) == (0, expected)
    assert "3      Steered  no\n" in text
    assert msgspec.json.decode(as_json)["reason"] == expected
    assert yaml.safe_load(as_yaml)["reason"] == expected
    assert missing == (1, "moorage: there is no pod default/nobody\n")
    assert [answer[1].splitlines()[0] for answer in named] == [expected] * 3

    nowhere = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    (status, text), (_, as_json), without = await asyncio.gather(
        ran("explain", "p", *admin, environment=nowhere),
        ran("explain", "p", *admin, "-o", "json", environment=nowhere),
        ran("explain", "p", environment=nowhere),
    )
    assert (status, text.splitlines()[0]) == (0, expected)
    assert "Without Events, pod groups and ResourceClaims: there is no kubeconfig at " in text
    assert msgspec.json.decode(as_json)["reason"] == expected
    assert without[1].startswith("moorage: there is no kubeconfig at ")
