"""In-tree plugins: the stand-in decides as kube-scheduler does, also with DeviceClasses."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.scenarios.devices import FPGA, IMPLICIT, device_class, requesting
from tests.scenarios.world import World
from tools.golden.scheduler import HOSTNAME, SHORT, ZONE
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node

SCHEDULER = "in-tree"

CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
PORTS = "node(s) didn't have free ports for the requested pod ports"
NOT_BESIDE = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
LONELY = "node(s) didn't match pod affinity rules"
SKEWED = "node(s) didn't match pod topology spread constraints"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
OTHER_POOLS = frozenset((CORDONED, TAINTED, ELSEWHERE))
"""Why a pod that must be in one pool is in none of the others."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal pods, of which the first `fits` are placed.

    Attributes:
        pods: In the order in which they are created.
        fits: How many of them find a node.
        reasons: Why the others do not.
        places: The nodes that the others may be on; empty if any will do.
    """

    pods: Sequence[Object]
    fits: int
    reasons: frozenset[str]
    places: frozenset[str]


def nodes() -> list[Object]:
    """Return the nodes of all pools."""
    zones = ("i1", "i1", "i2")
    return [
        *(_node("cpu", i, cpu="4") for i in range(10)),
        *(_node("slots", i, pods="5") for i in range(4)),
        *(_node("gpu", i, gpu="2") for i in range(3)),
        *(_node("ports", i) for i in range(5)),
        *(_node("tainted", i, taint="dedicated") for i in range(3)),
        *(_node("cordoned", i, unschedulable=True) for i in range(2)),
        *(_node("apart", i) for i in range(6)),
        *(_node("together", i, {ZONE: f"h{i % 2}"}) for i in range(4)),
        *(_node("spread", i, {ZONE: z}, pods="3") for i, z in enumerate(zones)),
        _node("spread", 3),
        *(_node("cores", i, {"cores": str(4 * 2**i)}) for i in range(4)),
        *(_node("named", i) for i in range(2)),
        _node("wishes", 0, {"disk": "ssd"}, cpu="16"),
        *(_node("wishes", i, cpu="16", image="big:1") for i in (1, 2)),
        _node("wishes", 3, cpu="16", taint="busy", effect="PreferNoSchedule"),
        *(_node("disks", i) for i in range(2)),
    ]


def all_groups() -> list[Group]:
    """Return all groups in the order in which their pods are created."""
    return [*_by_room(), *_by_taint(), *_by_pods(), *_by_node(), *_by_wish()]


def _by_room() -> Iterator[Group]:
    disk = {"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}
    yield _group("cpu", "cpu", 60, 40, "Insufficient cpu", cpu="1")
    yield _group("memory", "cpu", 6, 0, "Insufficient memory", memory="999Gi")
    yield _group("slots", "slots", 26, 20, "Too many pods")
    yield _group("gpu", "gpu", 10, 6, "Insufficient example.com/gpu", limits="gpu")
    yield _group("ports", "ports", 12, 5, PORTS, port=8080)
    yield _group("disks", "disks", 4, 2, "node(s) had no available disk", volumes=[disk])


def _by_taint() -> Iterator[Group]:
    uncordoned = [_exists("node.kubernetes.io/unschedulable")]
    yield _group("intolerant", "tainted", 10, 0)
    yield _group("tolerant", "tainted", 20, 20, tolerations=[_exists("dedicated")])
    yield _group("kept-off", "cordoned", 8, 0)
    yield _group("undeterred", "cordoned", 4, 4, tolerations=uncordoned)


def _by_pods() -> Iterator[Group]:
    apart = {"podAntiAffinity": {REQUIRED: [_term("apart", HOSTNAME)]}}
    yield _group("apart", "apart", 10, 6, NOT_BESIDE, app="apart", affinity=apart)
    yield _group("repelled", "apart", 5, 0, REPELLED, app="apart")
    yield _group("db", "together", 1, 1, app="db", selector={ZONE: "h0"})
    near = {"podAffinity": {REQUIRED: [_term("db", ZONE)]}}
    yield _group("near", "together", 10, 10, affinity=near, places=("together-0", "together-2"))
    own = {"podAffinity": {REQUIRED: [_term("own", HOSTNAME)]}}
    yield _group("own", "together", 5, 5, app="own", affinity=own)
    lonely = {"podAffinity": {REQUIRED: [_term("nobody", ZONE)]}}
    yield _group("lonely", "together", 6, 0, LONELY, affinity=lonely)
    evenly = [_evenly("spread", ZONE, "DoNotSchedule")]
    reasons = ("Too many pods", SKEWED, f"{SKEWED} (missing required label)")
    yield _group(
        "spread", "spread", 12, 7, *reasons, app="spread", topologySpreadConstraints=evenly
    )


def _by_node() -> Iterator[Group]:
    many = _required(_expression("cores", "Gt", "8"))
    some = _required(_expression("cores", "In", "4", "16"), _expression("missing", "DoesNotExist"))
    too_many = _required(_expression("cores", "Gt", "64"))
    here, torn = _named("named-0"), _named("named-0", "named-1")
    yield _free("many-cores", 12, 12, many, places=("cores-2", "cores-3"))
    yield _free("some-cores", 12, 12, some, places=("cores-0", "cores-2"))
    yield _free("too-many-cores", 6, 0, too_many, OTHER_POOLS)
    yield _free("daemon", 10, 10, here, places=("named-0",))
    yield _free("fat-daemon", 5, 0, here, {"Insufficient cpu", NOT_NAMED}, cpu="99")
    yield _free("torn", 3, 0, torn, {"pod affinity terms conflict"})
    full = {CORDONED, TAINTED, "Insufficient cpu", "Too many pods"}
    yield _free("huge", 10, 0, {}, full, cpu="1000")


def _by_wish() -> Iterator[Group]:
    yield _group("anchor", "wishes", 1, 1, app="anchor", nodeName="wishes-2")
    wish = {"weight": 100, "preference": {"matchExpressions": [_expression("disk", "Exists")]}}
    here = {"nodeAffinity": {PREFERRED: [wish]}}
    yield _group("prefers", "wishes", 20, 20, affinity=here, places=("wishes-0",))
    near = {"weight": 100, "podAffinityTerm": _term("anchor", HOSTNAME)}
    beside = {"podAffinity": {PREFERRED: [near]}}
    yield _group("attracted", "wishes", 20, 20, affinity=beside, places=("wishes-2",))
    softly = [_evenly("avoiding", HOSTNAME, "ScheduleAnyway")]
    untainted = ("wishes-0", "wishes-1", "wishes-2")
    yield _group(
        "avoiding",
        "wishes",
        92,
        92,
        app="avoiding",
        image="big:1",
        topologySpreadConstraints=softly,
        places=untainted,
    )


def _group(
    name: str,
    pool: str,
    count: int,
    fits: int,
    *reasons: str,
    places: Sequence[str] = (),
    selector: Object | None = None,
    **more: Any,
) -> Group:
    """Return pods that must be in a pool."""
    wanted = {"pool": pool, **(selector or {})}
    pods = [_pod(f"{name}-{i:03}", nodeSelector=wanted, **more) for i in range(count)]
    return Group(pods=pods, fits=fits, reasons=OTHER_POOLS.union(reasons), places=frozenset(places))


def _free(
    name: str,
    count: int,
    fits: int,
    affinity: Object,
    reasons: Collection[str] = (),
    *,
    places: Sequence[str] = (),
    cpu: str = "",
) -> Group:
    """Return pods that name no pool."""
    pods = [_pod(f"{name}-{i:03}", affinity=affinity, cpu=cpu) for i in range(count)]
    return Group(pods=pods, fits=fits, reasons=frozenset(reasons), places=frozenset(places))


def _node(
    pool: str,
    index: int,
    labels: Object | None = None,
    *,
    taint: str = "",
    effect: str = "NoSchedule",
    unschedulable: bool = False,
    image: str = "",
    **amounts: str,
) -> Object:
    name = f"{pool}-{index}"
    has = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    has |= {SHORT.get(resource, resource): amount for resource, amount in amounts.items()}
    taints = [{"key": taint, "effect": effect, "value": ""}] if taint else []
    images = [{"names": [image], "sizeBytes": 10**9}] if image else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, "pool": pool, **(labels or {})}},
        "spec": {"taints": taints, "unschedulable": unschedulable},
        "status": {"allocatable": has, "capacity": has, "images": images},
    }


def _pod(
    name: str,
    *,
    app: str = "",
    image: str = "app:1",
    limits: str = "",
    port: int = 0,
    cpu: str = "",
    memory: str = "",
    **spec: Any,
) -> Object:
    wanted = {"cpu": cpu, "memory": memory}
    resources = {"requests": {resource: amount for resource, amount in wanted.items() if amount}}
    if limits:
        resources["limits"] = {SHORT[limits]: "1"}
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    main = {"name": "main", "image": image, "resources": resources, "ports": ports}
    labels = {"app": app} if app else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [main],
            "schedulerName": SCHEDULER,
            **spec,
        },
    }


def _expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def _term(app: str, topology_key: str) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology_key}


def _evenly(app: str, topology_key: str, otherwise: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _exists(key: str) -> Object:
    return {"key": key, "operator": "Exists"}


def _required(*expressions: Object) -> Object:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}


def _named(*names: str) -> Object:
    fields = [_expression("metadata.name", "In", name) for name in names]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}


pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": SCHEDULER}],
}


def reasons(message: str) -> frozenset[str]:
    """Return what rejected nodes, without how many."""
    rejections = message.partition(" nodes are available: ")[2].partition(". ")[0]
    return frozenset(re.sub(r"^\d+ ", "", part) for part in rejections.split(", "))


def condition(pod: Object) -> Object:
    conditions = pod.get("status", {}).get("conditions") or ()
    found: Object = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    return found


async def test_400_pods_of_many_kinds_are_placed_or_stay_pending_for_the_same_reasons(
    world: World,
) -> None:
    groups = all_groups()
    created = [pod for group in groups for pod in group.pods]
    assert len(created) == 400
    await world.nodes(*nodes())

    async def settled() -> bool:
        pods = (await world.pods()).values()
        return all(p["spec"].get("nodeName") or condition(p).get("message") for p in pods)

    async with world.configured_scheduler("kube-scheduler", CONFIGURATION):
        for pod in created:  # not side by side: the first come are the first placed
            await world.create(pod)
        await world.until(settled)
        pods = await world.pods()

    for group in groups:
        names = [pod["metadata"]["name"] for pod in group.pods]
        places = {name: pods[name]["spec"].get("nodeName") for name in names}
        assert [name for name in names if places[name]] == names[: group.fits]
        if group.places:
            assert set(places.values()) <= {*group.places, None}
        pending = names[group.fits :]
        given = {name: reasons(condition(pods[name])["message"]) for name in pending}
        assert given == dict.fromkeys(pending, group.reasons)


async def rejected(world: World, asked: Object) -> dict[str, str]:
    """Return why the gateway rejects n1 or n2."""
    answer = await world.filter(asked, ["n1", "n2"])
    assert answer["Error"] == ""
    return {**(answer["FailedNodes"] or {}), **(answer["FailedAndUnresolvableNodes"] or {})}


@pytest.mark.parametrize("resource", [FPGA, IMPLICIT], ids=["named", "implicit"])
async def test_a_class_that_comes_and_goes_changes_where_a_pod_fits(
    world: World, resource: str
) -> None:
    await world.nodes(node("n1"), node("n2"))
    (asked,) = await world.create(requesting("p", resource))
    missing = f"Insufficient {resource}"
    assert await rejected(world, asked) == {"n1": missing, "n2": missing}
    await world.create(device_class())

    async def passes() -> bool:
        return await rejected(world, asked) == {}

    async def is_rejected() -> bool:
        return not await passes()

    await world.until(passes)
    await world.remove(device_class())
    await world.until(is_rejected)
