"""A cluster in which everything is mixed, by a generator that always makes the same.

The other clusters look at one thing after the other; here plugins meet what they are not about.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

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

T = TypeVar("T")

RACK = "example.com/rack"
APPS = ("web", "db", "cache")
TEAMS = ("default", "team-a", "team-b")
DISKS = ("ssd", "hdd")
TAINTS = ("spare", "old", "owner")
EFFECTS = ("PreferNoSchedule", "PreferNoSchedule", "NoSchedule")
IMAGES = {"web:1": 90, "db:2": 900, "cache": 2500, "cache:latest": 2500}  # MiB
CPUS = ("0", "7m", "150m", "0.333", "1")
MEMORIES = ("0", "1", "100Mi", "333M", "1.5Gi")
MIB = 1024 * 1024


class Dice:
    """Chooses; with nothing but `random()`, which gives the same numbers in every Python."""

    def __init__(self, seed: int) -> None:
        self._next = Random(seed).random

    def happens(self, chance: float) -> bool:
        """Say yes that often."""
        return self._next() < chance

    def one(self, of: Sequence[T]) -> T:
        """Choose one."""
        return of[int(self._next() * len(of))]

    def some(self, of: Sequence[T], chance: float) -> list[T]:
        """Choose each that often."""
        return [each for each in of if self.happens(chance)]

    def upto(self, most: int) -> int:
        """Choose a number from 1."""
        return 1 + int(self._next() * most)


def random_node(dice: Dice, name: str) -> Object:
    """Build a node that may lack anything."""
    labels = {key: dice.one(values) for key, values in TOPOLOGY if dice.happens(0.8)}
    taints = [taint(key, dice.one(EFFECTS)) for key in dice.some(TAINTS, 0.2)]
    images = dice.some([name for name in IMAGES if name != "cache"], 0.5)
    more: Object = {"gpu": str(dice.upto(4))} if dice.happens(0.4) else {}
    return node(
        name,
        labels,
        taints=taints,
        images={image: IMAGES[image] * MIB for image in images},
        unschedulable=dice.happens(0.1),
        cpu=dice.one(("2", "3900m", "7.777")),
        memory=dice.one(("4Gi", "7999999999", "15.5Gi")),
        **more,
    )


TOPOLOGY = ((ZONE, ("a", "b", "c")), (RACK, ("r1", "r2")), ("disk", DISKS), ("cores", ("4", "8")))


def random_pod(dice: Dice, name: str, on: str = "") -> Object:
    """Build a pod with a mixture of wishes."""
    app = dice.one(APPS)
    spec: Object = {}
    if affinity := _affinity(dice):
        spec["affinity"] = affinity
    if dice.happens(0.4):
        spec["topologySpreadConstraints"] = _constraints(dice, app)
    if dice.happens(0.4):
        spec["tolerations"] = [_toleration(dice)]
    if dice.happens(0.15):
        spec["nodeSelector"] = {"disk": dice.one(DISKS)}
    return pod(
        name,
        *_containers(dice),
        on=on,
        namespace=dice.one(TEAMS),
        labels={"app": app, "version": dice.one(("1", "2"))},
        **spec,
    )


def _containers(dice: Dice) -> list[Object]:
    return [_container(dice, f"c{i}") for i in range(dice.upto(2))]


def _container(dice: Dice, name: str) -> Object:
    image = dice.one(tuple(IMAGES))
    requests: Object = {}
    for resource, amounts in (("cpu", CPUS), ("memory", MEMORIES)):
        if dice.happens(0.7):
            requests[resource] = dice.one(amounts)
    return container(name, image, **requests)


def _affinity(dice: Dice) -> Object:
    affinity: Object = {}
    if dice.happens(0.4):
        terms = [
            {"weight": dice.upto(100), "preference": {"matchExpressions": [_expression(dice)]}}
            for _ in range(dice.upto(3))
        ]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    for kind, hard in (("podAffinity", 0.05), ("podAntiAffinity", 0.15)):
        side: Object = {}
        if dice.happens(hard):
            side["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(dice)]
        if dice.happens(0.35):
            side["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": dice.upto(100), "podAffinityTerm": _term(dice)}
                for _ in range(dice.upto(2))
            ]
        affinity |= {kind: side} if side else {}
    return affinity


def _expression(dice: Dice) -> Object:
    return dice.one(
        (
            expression("disk", "In", *DISKS[: dice.upto(2)]),
            expression(ZONE, "NotIn", "a"),
            expression(RACK, "Exists"),
            expression("cores", "Gt", "5"),
            expression("cores", "DoesNotExist"),
        )
    )


def _term(dice: Dice) -> Object:
    term: Object = {
        "topologyKey": dice.one((ZONE, RACK, HOSTNAME)),
        "labelSelector": selector(app=dice.one(APPS)),
    }
    if dice.happens(0.3):
        term["namespaces"] = dice.some(TEAMS, 0.6)
    elif dice.happens(0.2):
        term["namespaceSelector"] = {}
    if dice.happens(0.2):
        term[dice.one(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return term


def _constraints(dice: Dice, app: str) -> list[Object]:
    return [
        {
            "topologyKey": key,
            "maxSkew": dice.upto(4),
            "whenUnsatisfiable": dice.one(("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")),
            "labelSelector": selector(app=app),
            "nodeTaintsPolicy": dice.one(("Ignore", "Honor")),
            "nodeAffinityPolicy": dice.one(("Ignore", "Honor")),
        }
        for key in dice.some((ZONE, RACK, HOSTNAME), 0.5)
    ]


def _toleration(dice: Dice) -> Object:
    return dice.one(({"key": dice.one(TAINTS), "operator": "Exists"}, {"operator": "Exists"}))


def _cluster() -> Cluster:
    dice = Dice(136)
    names = [f"n{i:02}" for i in range(12)]
    return Cluster(
        name="random",
        nodes=[random_node(dice, name) for name in names],
        bound=[random_pod(dice, f"b{i:02}", dice.one(names)) for i in range(36)],
        profiles=("default",),
        scored=[random_pod(dice, f"p{i:02}") for i in range(60)],
        filtered={},
    )


RANDOM = _cluster()
