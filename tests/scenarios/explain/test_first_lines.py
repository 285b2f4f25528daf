"""The first line and Next about a pod in every situation that has been seen, one row each.

A stage brings situations about. Each row has what happened, what the first line has to say, and
what Next has to.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import yaml

from tests.scenarios.explain.asking import Row, answered
from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import binding, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

Stage = Callable[[World], AsyncIterator[Sequence[Row]]]

NAMES = ("n1", "n2", "n3", "n4")
OUTVOTED = "kube-scheduler's own scores outvoted Moorage's: it chose"
PULLED = "see whether the gateway runs and kube-scheduler reaches it: `moorage doctor`"
RUN = "tekton.dev/pipelineRun"


def all_but(*names: str, reason: str = "no") -> dict[str, str]:
    return {name: reason for name in NAMES if name not in names}


def preferring(name: str) -> Object:
    """Have kube-scheduler's own scores prefer a node."""
    expression = {"key": "name", "operator": "In", "values": [name]}
    term = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"nodeAffinity": preferred}}


def naming(name: str) -> Object:
    """Have a pod run on a node of this name only."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}}


async def pods_on_nodes(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered", "colocated", "fitting"):
        await world.create(
            pod("only", reject=all_but("n2")),
            pod("best", score={"n3": 100, "n1": 40}),
            pod("alike"),
            pod("claimed", "colocated", labels={RUN: "a"}),
            pod("unscored", "fitting"),
            pod("failed", score={"n1": "no number"}),
            pod("failed-one", reject=all_but("n1"), score={"n1": "no number"}),
        )
        await world.bound()
        yield [
            Row("one node passes", "only", "is on n2: one node of 4 was left: Steered rejected 3 "),
            Row(
                "a plugin prefers it",
                "best",
                "is on n3: Moorage prefers n3 to n1, 100 to 40: Steered [+]60$",
            ),
            Row(
                "all alike", "alike", "chose n. among 4 nodes that tie for Moorage's best total, 0$"
            ),
            Row(
                "its plugin claims the node",
                "claimed",
                r"is on (n.): \1 was drawn among 4 feasible nodes: Moorage gave no scores; claimed "
                "for OneNodePerPipelineRun, so kube-scheduler is offered no other node$",
            ),
            Row("no score plugin", "unscored", "chose among 4 nodes: Moorage gave no scores$"),
            Row(
                "a score plugin fails",
                "failed",
                "chose among 4 nodes: Moorage gave no scores since Steered failed: ValueError",
            ),
            Row("it fails for one node", "failed-one", "is on n1: one node of 4 was left: Steered"),
        ]


async def votes_and_ties(world: World) -> AsyncIterator[Sequence[Row]]:
    names = [f"n{number}" for number in range(1, 8)]
    await world.nodes(*(node(name, labels={"name": name}) for name in names))
    close = {"n1": 90.2, "n2": 90.4}
    many = dict.fromkeys(names, 50)
    async with world.scheduler("steered", weight=1):
        await world.create(
            pod("equal", score={"n1": 70, "n2": 70}, spec=preferring("n2")),
            pod("many", score=many, spec=preferring("n7")),
            pod("rounded", score=close, spec=preferring("n2")),
            pod("rounded-down", score=close, spec=preferring("n1")),
            pod("outvoted", score={"n1": 51, "n2": 50}, spec=preferring("n2")),
            pod("outvoted-far", score={"n1": 10, "n2": 9}, spec=preferring("n3")),
            pod("last", score=many | {"n1": 51}, spec=preferring("n7")),
        )
        await world.bound()
        best = "is on n{0}: kube-scheduler chose n{0} among {1} nodes that tie for Moorage's best "
        yield [
            Row("two are the best", "equal", best.format(2, 2)),
            Row("more are the best than are listed", "many", best.format(7, 7)),
            Row("rounded up", "rounded", "n2 is tied with 1 other after rounding to 100 steps"),
            Row(
                "rounded down",
                "rounded-down",
                "is on n1: kube-scheduler chose n1, 90.2, by its own scores or by lot: after "
                "rounding it ties with n2, 90.4$",
            ),
            Row("outvoted", "outvoted", f"{OUTVOTED} n2, 50, over n1, 51, a lead of 1 x 10"),
            Row("by more", "outvoted-far", f"{OUTVOTED} n3, 0, over n1, 10, a lead of 10 x"),
            Row("not among the listed", "last", f"{OUTVOTED} n7, 50, over n1, 51, a lead of 1 x"),
        ]


async def pods_that_moorage_did_not_place(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered", "others"):
        gates = {"schedulingGates": [{"name": "example.com/quota"}]}
        by_hand, rejected, *_ = await world.create(
            pod("by-hand", "nobody"),
            pod("forced", reject=all_but()),
            pod("gated", spec=gates),
            pod("mistyped", "steerde"),
            pod("other", "others"),
            pod("given", spec={"nodeName": "n1"}),
            pod("lost", spec={"nodeName": "n9"}),
        )
        await world.condition("forced", "Unschedulable")
        for obj in (by_hand, rejected):
            name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
            path = f"{PODS}/{name}/binding"
            (await world.request("POST", path, binding(name, "n2", uid=uid))).check()
        await world.bound("other", "by-hand", "given", "forced")
        yield [
            Row(
                "a scheduling gate",
                "gated",
                "is pending: it waits for its scheduling gates: example.com/quota$",
                next="whoever set a gate has to remove it from spec.schedulingGates",
            ),
            Row(
                "a mistyped schedulerName",
                "mistyped",
                "is pending: no scheduler has tried it: its schedulerName is steerde, which no "
                "profile serves",
                next="a scheduler with a profile steerde has to run",
            ),
            Row(
                "another scheduler",
                "other",
                "is on n.: others bound it; Moorage has no decision about it: its schedulerName "
                "is others, which no profile serves",
                alone=False,
            ),
            Row("a given node", "given", "is on n1: it was created with a nodeName, so no"),
            Row(
                "a given node that does not exist",
                "lost",
                "is on n9, a node that does not exist: no kubelet runs it there$",
                next="create node n9, or delete the pod: nothing moves it",
            ),
            Row(
                "bound by hand",
                "by-hand",
                "is on n2: Moorage has no decision about it: its schedulerName is nobody",
            ),
            Row(
                "bound by hand though rejected",
                "forced",
                "is on n2: it was placed without Moorage, which had rejected it: Steered rejected "
                "4 of 4: no$",
            ),
        ]


async def pods_that_no_node_suits(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(node("n1", cpu="1"), node("n2"), node("n3"))
    both = {"n2": "no slice", "n3": "no slice"}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    async with world.scheduler("steered"):
        await world.create(
            pod("in-tree", cpu="100"),
            pod("rejected", reject=both | {"n1": "too hot"}),
            pod("mixed", cpu="2", reject=both),
            pod("alike", cpu="2", reject={"n2": "Insufficient cpu", "n3": "Insufficient cpu"}),
            pod("commas", reject=dict.fromkeys(NAMES, "no GPU, 4 wanted. Ask ops")),
            pod("crowded", preemptible=dict.fromkeys(NAMES, "too crowded")),
            pod("selecting", spec={"nodeSelector": {"disk": "ssd"}}),
            pod("tied", spec=naming("n9")),
            pod("without-volume", "nobody", spec={"volumes": [volume]}),
            pod(
                "without-claim",
                "nobody",
                spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]},
            ),
            pod("without-made-claim", "nobody", spec={"resourceClaims": [template]}),
        )
        for name in ("in-tree", "rejected", "mixed", "alike", "commas", "crowded", "selecting"):
            await world.condition(name, "Unschedulable")
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            # The stand-in does not look at volumes: this is what kube-scheduler writes.
            "message": '0/3 nodes are available: persistentvolumeclaim "data" not found. not found',
        }
        status = {"status": {"conditions": [condition]}}
        (await world.request("PATCH", f"{PODS}/without-volume/status", status)).check()
        none = "is pending: none of 3 nodes suits it:"
        change = "change the pod(, or n2 or n3,| or a node) to what Steered asks for"
        yield [
            Row(
                "too large for all",
                "in-tree",
                rf"{none} 3 Insufficient cpu \(kube-scheduler\)$",
                next="add a node with 100 of cpu, or lower the pod's requests of cpu: no node has ",
            ),
            Row(
                "a plugin has two reasons",
                "rejected",
                rf"{none} 2 no slice \(Moorage Steered\), 1 too hot \(Moorage Steered\)$",
                next=change,
            ),
            Row(
                "a plugin and kube-scheduler",
                "mixed",
                rf"{none} 2 no slice \(Moorage Steered\), 1 Insufficient cpu \(kube-scheduler\)$",
                next=change,
            ),
            Row(
                "both for the same reason",
                "alike",
                rf"{none} 2 Insufficient cpu \(Moorage Steered\), 1 Insufficient cpu "
                r"\(kube-scheduler\)$",
                next=change,
            ),
            Row(
                "a reason with commas and dots",
                "commas",
                rf"{none} 3 no GPU, 4 wanted. Ask ops \(Moorage Steered\)$",
                next=change,
            ),
            Row(
                "evicting pods may help",
                "crowded",
                rf"{none} 3 too crowded \(Moorage Steered\)$",
                next="Steered asks for, or remove pods; per node: `moorage explain --node`",
            ),
            Row(
                "a label that no node has",
                "selecting",
                rf"{none} 3 node\(s\) didn't match Pod's node affinity/selector \(kube-scheduler",
                next="label a node with disk=ssd, or change the pod's nodeSelector",
            ),
            Row(
                "a node that does not exist",
                "tied",
                rf"{none} 3 node\(s\) didn't (match|satisfy) .*ffinity.* \(kube-scheduler\)$",
                next="the pod's affinity names node n9: create it, or change the affinity",
            ),
            Row(
                "a volume claim that does not exist",
                "without-volume",
                r'is pending: persistentvolumeclaim "data" not found \(kube-scheduler\)$',
                next="create PersistentVolumeClaim data, or name another one",
            ),
            Row(
                "a ResourceClaim that does not exist",
                "without-claim",
                "is pending: it waits for ResourceClaims that do not exist: shared$",
                next="they have to be created, or spec.resourceClaims has to name others",
                alone=False,
            ),
            Row(
                "a ResourceClaim that is not made",
                "without-made-claim",
                r"is pending: it waits for ResourceClaims that do not exist: gpu \(of template gpu",
                next="they have to be created",
            ),
        ]


async def binds_under_way(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(node("n1", annotations={"device": "0"}))
    gang = {"gang": "ring", "gang-size": "2"}
    async with world.scheduler("steered", "isolated", "grouped"):
        await world.create(
            pod("waits", "grouped", labels=gang),
            pod("lacks", "grouped", cpu="100", labels=gang),
        )
        failed = (
            r"is pending: the bind to n1 failed: .*plugin Together: waited 3\.\d s for 2 pods of "
        )
        yield [
            Row(
                "Permit has it wait",
                "waits",
                "is pending: its bind to n1 waits: Together waits for 2 pods of ring$",
                next="Together lets it go on once they are there",
            ),
            Row(
                "in vain", "waits", failed, next="what plugin Together waits for has to come within"
            ),
        ]
        for name in ("waits", "lacks"):
            (await world.request("DELETE", f"{PODS}/{name}")).check()

        world.proxy.before.clear()
        await world.create(pod("holds", "isolated", labels={RUN: "a"}))
        yield [
            Row(
                "the API server does not answer the binder",
                "holds",
                "is pending: its bind to n1 is under way: ",
                next="see whether the API server answers the binder",
            )
        ]
        await world.create(pod("waits-for-it", "isolated", labels={RUN: "b"}))
        yield [
            Row(
                "a node that another pod's claim holds",
                "waits-for-it",
                r"the only node does not suit it: 1 node\(s\) already ran another PipelineRun "
                r"\(Moorage OneNodePerPipelineRun\); held by pods that are not bound yet: n1 by "
                "default/holds$",
                next="change the pod or a node to what OneNodePerPipelineRun asks for",
            ),
            Row(
                "the bind fails",
                "holds",
                "is pending: the bind to n1 failed: ",
                next="see whether the API server answers the binder",
            ),
        ]
        world.proxy.before.set()
        await world.bound("holds")


async def pods_that_end(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"), node("n2", cpu="1"), node("n3", cpu="1"))
    slow = ("example.com/slow",)
    async with world.scheduler("steered"):
        await world.create(
            pod("going", finalizers=slow, reject=all_but()),
            pod("gone", reject=all_but("n2")),
            pod("again"),
            pod("small", cpu="900m", finalizers=slow, reject=all_but("n1")),
        )
        await world.bound("gone", "small", "again")
        await world.condition("going", "Unschedulable")
        for name in ("going", "gone", "again"):
            (await world.request("DELETE", f"{PODS}/{name}")).check()
        urgent = {"priorityClassName": "urgent"}
        await world.create(
            pod("again", "nobody"),
            pod("urgent", cpu="800m", spec=urgent, reject=all_but("n1")),
        )
        evicted = "it to make room for default/urgent, a more important pod$"
        remade = "what made it creates another one; raise its priority to keep it"
        yield [
            Row("it is being deleted", "going", "is pending: it is being deleted$"),
            Row("it was deleted", "gone", "is gone: it was bound to n2: one node of 3 was left: "),
            Row(
                "an earlier pod had the name",
                "again",
                "is pending: no scheduler has tried it: its schedulerName is nobody, which no",
                next="a scheduler with a profile nobody has to run",
            ),
            Row(
                "pods are evicted for it",
                "urgent",
                "is pending: it is to run on n1 once the pods that kube-scheduler evicts for it ",
                next="kube-scheduler binds it when they are; pods that end slowly hold it up",
            ),
            Row(
                "it is being evicted",
                "small",
                f"is on n1: kube-scheduler evicts {evicted}",
                next=remade,
            ),
        ]
        await world.request("PATCH", f"{PODS}/small", {"metadata": {"finalizers": None}})
        await world.bound("urgent")
        gone = f"is gone: kube-scheduler evicted {evicted}"
        yield [Row("it was evicted", "small", gone, next=remade)]


async def services_that_are_down(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(*map(node, NAMES))
    programs = world.services.programs
    async with world.scheduler():
        await world.create(pod("failing", fail="no license"), pod("old"))
        await world.bound("old")
        broken = r"is pending: the attempt failed: .*plugin Steered failed in prepare: RuntimeErr"
        yield [
            Row(
                "a filter plugin fails",
                "failing",
                rf"{broken}.*no license.*; in backoff until about \d\d:\d\d:\d\d$",
                next="mend plugin Steered; with failurePolicy: Ignore pods are placed without it",
                alone=False,  # without Events it does not know of the last attempts
            )
        ]
        (await world.request("DELETE", f"{PODS}/failing")).check()

        await programs["filter"].kill()
        await world.create(pod("unfiltered"))
        yield [
            Row(
                "no filter",
                "unfiltered",
                "is pending: the attempt failed: filter service is not available",
                next="see /readyz of the gateway: why no filter",
            )
        ]
        await programs["filter"].start()
        await world.bound("unfiltered")

        await programs["scorer-1"].kill()
        await programs["scorer-2"].kill()
        await world.create(pod("unscored"))
        await world.bound("unscored")
        down = "chose among 4 nodes without scores: scorer service is not available"
        yield [Row("no scorer", "unscored", down)]
        await programs["scorer-1"].start()
        await programs["scorer-2"].start()

        await programs["binder"].kill()
        await world.create(pod("unbound"))
        yield [
            Row(
                "no binder",
                "unbound",
                "is pending: the bind to n. failed: binder service: the binder is not reached",
                next="see whether the binder runs: `moorage doctor`",
            )
        ]
        await programs["binder"].start()
        await world.bound("unbound")

    async with world.scheduler(httpTimeout="1s"):
        programs["gateway"].hold()
        await world.create(pod("unanswered"))
        await world.condition("unanswered", "SchedulerError")
        late = "is pending: kube-scheduler failed: Post .*context deadline exceeded"
        yield [Row("a gateway that hangs", "unanswered", late, next=PULLED, alone=False)]
        programs["gateway"].go_on()
        await world.bound("unanswered")

        await programs["gateway"].kill()
        await world.create(pod("uncalled"))
        refused = "is pending: kube-scheduler failed: Post .*connect: connection refused"
        unasked = "Moorage has no decision about it: the gateway's admin port cannot be asked"
        yield [
            Row("no gateway", "uncalled", refused, next=PULLED, alone=False),
            Row("none any more", "old", f"is on n.: steered bound it; {unasked}", alone=False),
        ]
        await programs["gateway"].start()
        await world.bound("uncalled")
        again = "it is bound to n.; Moorage was not asked, or the gateway restarted since$"
        yield [Row("a gateway that was restarted", "old", again)]

    async with world.scheduler(httpTimeout="1s", ignorable=True):
        programs["gateway"].hold()
        await world.create(pod("passed", reject=all_but()))
        await world.bound("passed")
        programs["gateway"].go_on()
        without = "placed without Moorage|Moorage (bound it and )?has no decision about it: "
        yield [Row("a gateway that hangs, and may", "passed", f"is on n.: .*({without})")]


async def verdicts_that_may_be_wrong_by_now(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(node("n1"), node("n2"))
    file = world.plane.directory / "policy.yaml"
    policy = file.read_text()
    async with world.scheduler("steered"):
        await world.create(pod("late", reject=all_but(reason="hot")))
        await world.condition("late", "Unschedulable")
    # Nobody tries it again from here on.
    said = r"none of 2 nodes suits it: 2 hot \(Moorage Steered\)"
    again = "wait: the gateway has it tried again by what has changed"
    await world.request("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"cool": "yes"}}})
    yield [
        Row(
            "a node has changed since the verdict",
            "late",
            f"{said}; nodes have changed since that verdict(, by a view of .* s old)?$",
            next=again,
        )
    ]
    try:
        other = yaml.safe_load(policy)
        del next(each for each in other["profiles"] if each["schedulerName"] == "second")["plugins"]
        file.write_text(yaml.safe_dump(other))
        changed = rf"{said}; decided by policy \w+, and \w+ is active since"
        yield [Row("the policy has changed since the verdict", "late", changed, next=again)]
    finally:
        file.write_text(policy)


async def one_node_is_offered(world: World) -> AsyncIterator[Sequence[Row]]:
    await world.nodes(node("n1"), node("n2", cpu="1"))
    async with world.scheduler():
        await world.create(pod("large", cpu="2"))
        await world.bound("large")
        offered = "is on n1: kube-scheduler offered one node only$"
        yield [Row("all others are too small", "large", offered)]


STAGES: Sequence[Stage] = (
    pods_on_nodes,
    votes_and_ties,
    one_node_is_offered,
    pods_that_moorage_did_not_place,
    pods_that_no_node_suits,
    binds_under_way,
    pods_that_end,
    verdicts_that_may_be_wrong_by_now,
    services_that_are_down,
)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_first_lines_are_right(world: World, stage: Stage) -> None:
    async with contextlib.aclosing(stage(world)) as situations:  # type: ignore[type-var]
        async for rows in situations:
            await answered(world, rows)
