"""A cluster about who stands near whom: spreading, affinity and anti-affinity of pods."""

from typing import Any

from tools.golden.objects import (
    HOSTNAME,
    ZONE,
    Cluster,
    container,
    expression,
    node,
    pod,
    selector,
    taint,
)
from tools.planes.embedded import Object

RACK = "example.com/rack"
WEB = selector(app="web")
NAMESPACES = ("team-a", "team-b")


def placed(name: str, zone: str = "", rack: str = "", **options: Any) -> Object:
    """Build a node in a zone and a rack, if it is in any."""
    return node(name, {k: v for k, v in ((ZONE, zone), (RACK, rack)) if v}, **options)


def nameless(name: str, zone: str) -> Object:
    """Build a node without the label of its name."""
    obj = node(name, {ZONE: zone})
    del obj["metadata"]["labels"][HOSTNAME]
    return obj


NODES = (
    placed("a1", "a", "r1"),
    placed("a2", "a", "r2"),
    placed("a3", "a"),
    placed("b1", "b", "r1"),
    placed("b2", "b", "r3", taints=[taint("owner", "NoSchedule", "me")]),
    placed("c1", "c", unschedulable=True),
    placed("rackless"),
    placed("zoneless", rack="r4"),
    nameless("nameless", "b"),
)


def replica_set(name: str, **labels: str) -> Object:
    """Build a ReplicaSet; nobody makes its pods."""
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def stateful_set(name: str, **labels: str) -> Object:
    """Build a StatefulSet; nobody makes its pods."""
    return replica_set(name, **labels) | {"apiVersion": "apps/v1", "kind": "StatefulSet"}


OTHERS = (
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in NAMESPACES),
    replica_set("web", app="web"),
    stateful_set("db", app="db"),
)


def term(key: str, labels: Object | None, **fields: Any) -> Object:
    """Build a term of an affinity between pods."""
    return {"topologyKey": key, **({"labelSelector": labels} if labels else {}), **fields}


def near(*terms: Object) -> Object:
    """Require pods nearby."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: Object) -> Object:
    """Require that pods are not nearby."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def wish_near(*wishes: tuple[int, Object]) -> Object:
    """Prefer pods nearby."""
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _weighted(wishes)}}


def wish_far(*wishes: tuple[int, Object]) -> Object:
    """Prefer that pods are not nearby."""
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": _weighted(wishes)}
    return {"podAntiAffinity": preferred}


def spread(key: str, skew: int = 1, *, hard: bool = False, **fields: Any) -> Object:
    """Build a constraint."""
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    constraint: Object = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action}
    return constraint | {"labelSelector": WEB} | fields


def web(name: str, on: str = "", *constraints: Object, **spec: Any) -> Object:
    """Build a pod of the application web."""
    labels = {"app": "web", **spec.pop("more", {})}
    if constraints:
        spec["topologySpreadConstraints"] = list(constraints)
    return pod(name, on=on, labels=labels, **spec)


def _weighted(wishes: tuple[tuple[int, Object], ...]) -> list[Object]:
    return [{"weight": weight, "podAffinityTerm": wanted} for weight, wanted in wishes]


DB, FAN = selector(app="db"), selector(app="fan")
DISGUISED = selector(app="shy")
IN_TEAMS = {"matchExpressions": [expression("kubernetes.io/metadata.name", "In", *NAMESPACES)]}

BOUND = (
    *(web(f"web-{i}", at) for i, at in enumerate(("a1", "a1", "a2", "b1", "rackless", "b2"))),
    web("web-leaving", "a3", terminating=True),
    web("web-cordoned", "c1", more={"version": "2"}),
    web("web-nameless", "nameless", more={"version": "2"}),
    web("web-elsewhere", "b1", namespace="team-a"),
    web("web-elsewhere-2", "zoneless", namespace="team-b"),
    pod("db-0", on="a1", labels={"app": "db"}),
    pod("db-1", on="zoneless", labels={"app": "db", "apps.kubernetes.io/pod-index": "1"}),
    pod("db-far", on="a2", labels={"app": "db"}, affinity=wish_far((40, term(ZONE, WEB)))),
    pod("fan", on="b1", labels={"app": "fan"}, affinity=wish_near((25, term(RACK, WEB)))),
    pod(
        "clinger",
        on="a3",
        labels={"app": "fan"},
        affinity=near(term(HOSTNAME, FAN)),
    ),
    pod("needy", on="b1", affinity=near(term(ZONE, WEB))),
    pod("loner", on="a1", labels={"app": "loner"}, affinity=far(term(HOSTNAME, DISGUISED))),
    pod(
        "zone-loner",
        on="c1",
        namespace="team-a",
        affinity=far(term(ZONE, DISGUISED, namespaces=["default"])),
    ),
    pod(
        "world-loner",
        on="zoneless",
        namespace="team-b",
        affinity=far(term(RACK, DISGUISED, namespaceSelector={})),
    ),
)

SCORED = (
    pod("p-nobody"),
    web("p-web"),
    web("p-web-team", namespace="team-a"),
    web("p-zone", "", spread(ZONE)),
    web("p-host", "", spread(HOSTNAME)),
    web("p-rack", "", spread(RACK, 3)),
    web("p-zone-and-host", "", spread(ZONE, 2), spread(HOSTNAME, 5)),
    web("p-all-three", "", spread(ZONE), spread(HOSTNAME), spread(RACK, 2)),
    web("p-soft-and-hard", "", spread(ZONE), spread(HOSTNAME, 2, hard=True)),
    web("p-taints", "", spread(ZONE, nodeTaintsPolicy="Honor")),
    web(
        "p-selector",
        "",
        spread(ZONE, nodeAffinityPolicy="Ignore"),
        spread(HOSTNAME),
        nodeSelector={ZONE: "b"},
        tolerations=[{"operator": "Exists"}],
    ),
    web("p-version", "", spread(ZONE, matchLabelKeys=["version"]), more={"version": "2"}),
    web("p-select-all", "", spread(ZONE, labelSelector={})),
    web(
        "p-expressions",
        "",
        spread(ZONE, labelSelector={"matchExpressions": [expression("app", "NotIn", "db")]}),
    ),
    pod("p-of-others", topologySpreadConstraints=[spread(ZONE)]),
    web("p-default-web", owner="ReplicaSet/web"),
    pod("p-default-db", labels={"app": "db"}, owner="StatefulSet/db"),
    web("p-of-a-job", owner="Job/web"),
    pod("p-near", affinity=wish_near((10, term(ZONE, WEB)))),
    pod("p-near-db", affinity=wish_near((7, term(HOSTNAME, DB)), (3, term(RACK, WEB)))),
    pod("p-far", affinity=wish_far((100, term(ZONE, WEB)), (1, term(HOSTNAME, DB)))),
    pod("p-mixed", affinity=wish_near((9, term(ZONE, WEB))) | wish_far((13, term(RACK, WEB)))),
    pod("p-everywhere", affinity=wish_near((5, term(RACK, WEB, namespaceSelector={})))),
    pod("p-teams", affinity=wish_near((5, term(ZONE, WEB, namespaceSelector=IN_TEAMS)))),
    pod("p-team-b", affinity=wish_near((5, term(RACK, WEB, namespaces=["team-b"])))),
    pod("p-nothing-selected", affinity=wish_near((5, term(ZONE, selector(app="none"))))),
    pod("p-no-selector", affinity=wish_near((5, term(ZONE, None)))),
    pod("p-no-such-key", affinity=wish_near((5, term("example.com/none", WEB)))),
    pod(
        "p-like-me",
        labels={"app": "web", "version": "2"},
        affinity=wish_near((5, term(ZONE, WEB, matchLabelKeys=["version"]))),
    ),
    pod(
        "p-unlike-me",
        labels={"app": "web", "version": "2"},
        affinity=wish_near((5, term(ZONE, WEB, mismatchLabelKeys=["version"]))),
    ),
    pod("p-fan", labels={"app": "fan"}),
)

FILTERED = {
    "PodTopologySpread": (
        web("f-zone", "", spread(ZONE, hard=True)),
        web("f-zone-2", "", spread(ZONE, 2, hard=True)),
        web("f-host", "", spread(HOSTNAME, hard=True)),
        web("f-rack", "", spread(RACK, hard=True)),
        web("f-two", "", spread(ZONE, 3, hard=True), spread(RACK, 2, hard=True)),
        web("f-min-domains", "", spread(ZONE, 2, hard=True, minDomains=4)),
        web("f-taints", "", spread(HOSTNAME, hard=True, nodeTaintsPolicy="Honor")),
        web("f-affinity", "", spread(ZONE, hard=True), nodeSelector={RACK: "r1"}),
        web(
            "f-no-affinity",
            "",
            spread(ZONE, hard=True, nodeAffinityPolicy="Ignore"),
            nodeSelector={RACK: "r1"},
        ),
        web("f-version", "", spread(ZONE, hard=True, matchLabelKeys=["version"])),
        pod("f-not-me", topologySpreadConstraints=[spread(ZONE, hard=True)]),
        web("f-no-key", "", spread("example.com/none", hard=True)),
        web("f-select-all", "", spread(ZONE, hard=True, labelSelector={})),
        web("f-team", "", spread(ZONE, hard=True), namespace="team-a"),
    ),
    "InterPodAffinity": (
        pod("f-near", affinity=near(term(ZONE, DB))),
        pod("f-near-both", affinity=near(term(HOSTNAME, DB), term(ZONE, WEB))),
        pod("f-near-two", affinity=near(term(RACK, WEB), term(ZONE, WEB))),
        pod("f-first", labels={"app": "new"}, affinity=near(term(RACK, selector(app="new")))),
        pod("f-not-first", affinity=near(term(RACK, selector(app="new")))),
        pod("f-nobody-near", affinity=near(term(HOSTNAME, None))),
        pod("f-far", affinity=far(term(HOSTNAME, WEB))),
        pod("f-far-zone", affinity=far(term(ZONE, DB))),
        pod("f-far-twice", affinity=far(term(RACK, DB), term(HOSTNAME, WEB))),
        pod("f-near-and-far", affinity=near(term(ZONE, WEB)) | far(term(HOSTNAME, WEB))),
        pod("f-shy", labels={"app": "shy"}),
        pod("f-shy-team", namespace="team-a", labels={"app": "shy"}),
        pod("f-teams", affinity=far(term(HOSTNAME, WEB, namespaceSelector=IN_TEAMS))),
        pod("f-all-teams", affinity=near(term(RACK, WEB, namespaceSelector={}))),
        pod("f-team-a", affinity=near(term(HOSTNAME, WEB, namespaces=["team-a"]))),
        pod("f-shy-and-far", labels={"app": "shy"}, affinity=far(term(ZONE, DB))),
    ),
}

TOPOLOGY = Cluster(
    name="topology",
    nodes=NODES,
    bound=BOUND,
    others=OTHERS,
    profiles=("default", "most", "ratio"),
    scored=SCORED,
    filtered=FILTERED,
)
