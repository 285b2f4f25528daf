"""The nodes and pods of a campaign, and what each pod must have around it to be placed rightly."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tools.chaos.plugins.rules.rules import EXCLUSIVE, LIMITED
from tools.planes.objects import NAMESPACE, node

Object = dict[str, Any]

RUN = "tekton.dev/pipelineRun"
POOL = "chaos/pool"

POOLS: Mapping[str, int] = {
    "plain": 6,
    "runs": 9,
    "exclusive": 12,
    "limited": 18,
    "a": 2,
    "b": 2,
    "ranked": 4,
    "crowded": 2,
}
"""Nodes of each pool; so few that a wrong choice soon breaks a rule, and all pods fit."""

SHARES: Mapping[str, float] = {
    "plain": 0.2,
    "runs": 0.3,
    "exclusive": 0.15,
    "limited": 0.25,
    "replaced": 0.1,
}
"""Of all pods, how many are of each kind."""

RANKED = ("ranked-0", "ranked-2")
"""The best nodes by the two versions of the plugin Rank; what mixes them finds another."""

RANKED_PODS = 12

PRIORITY_CLASS: Object = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "chaos-important"},
    "value": 1000,
}
FIT_CROWDED = 2
"""Pods for which a node of the pool "crowded" has room."""

EVICTABLE_PODS = 4
IMPORTANT_PODS = 3
CROWD = frozenset({"evictable", "important"})
"""Kinds of pods that fill that pool, and of those that evict them."""

MOST_EXCLUSIVE = 9
MOST_RUNS = 7
MOST_LIMITED = 14
PODS_OF_A_RUN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A pod to create, and when.

    Attributes:
        name: Its name.
        kind: One of `SHARES`, or of `CROWD`.
        at: Seconds after the begin of the round.
        pool: The pool of nodes that it must go to.
        labels: The labels that the rules look at.
        replaces: The pod of the same name before it is deleted first, bound or not.
    """

    name: str
    kind: str
    at: float
    pool: str
    labels: Mapping[str, str] = field(default_factory=dict)
    replaces: bool = False
    profile: str = "moorage"

    def manifest(self) -> Object:
        """Return the pod as it is created."""
        cpu = "4" if self.kind in CROWD else "2" if LIMITED in self.labels else "10m"
        important = {"priorityClassName": PRIORITY_CLASS["metadata"]["name"]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": dict(self.labels)},
            "spec": {
                "schedulerName": self.profile,
                **(important if self.kind == "important" else {}),
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": {POOL: self.pool},
                "containers": [
                    {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
                ],
            },
        }


def nodes() -> list[Object]:
    """Return the nodes of all pools."""
    return [
        # Of the limited ones each has more room than the one before: a burst is sent to one node.
        node(
            f"{pool}-{number}",
            cpu=str(8 + 2 * number) if pool == "limited" else "8",
            labels={POOL: pool},
        )
        for pool, count in POOLS.items()
        for number in range(count)
    ]


def pool_of(name: str) -> str:
    """Return the pool of a node."""
    return name.rpartition("-")[0]


def pods(prefix: str, count: int, seconds: float, rng: random.Random) -> list[Wanted]:
    """Return pods to create in bursts within *seconds*, in order of time."""
    counts = {kind: max(1, round(count * share)) for kind, share in SHARES.items()}
    wanted = [*_plain(prefix, counts["plain"]), *_runs(prefix, counts["runs"])]
    wanted += _exclusive(prefix, counts["exclusive"])
    wanted += _limited(prefix, counts["limited"])
    rng.shuffle(wanted)
    bursts = max(1, round(seconds * 2))
    timed = [replace(each, at=rng.randrange(bursts) / 2) for each in wanted]
    timed += _replaced(prefix, counts["replaced"], seconds, rng)
    timed += _crowd(prefix, seconds)
    return sorted(timed, key=lambda each: each.at)


def ranked(prefix: str, seconds: float, rng: random.Random) -> list[Wanted]:
    """Return pods that are placed by nothing but scores of the plugin Rank."""
    return [
        Wanted(
            name=f"{prefix}-ranked-{i}",
            kind="ranked",
            at=rng.uniform(0, seconds),
            pool="ranked",
            profile="ranked",
        )
        for i in range(RANKED_PODS)
    ]


def _plain(prefix: str, count: int) -> Iterator[Wanted]:
    for i in range(count):
        yield Wanted(name=f"{prefix}-plain-{i}", kind="plain", at=0, pool="plain")


def _runs(prefix: str, count: int) -> Iterator[Wanted]:
    runs = min(MOST_RUNS, max(1, count // PODS_OF_A_RUN))
    for i in range(count):
        labels = {RUN: f"{prefix}-{i % runs}"}
        yield Wanted(name=f"{prefix}-run-{i}", kind="runs", at=0, pool="runs", labels=labels)


def _exclusive(prefix: str, count: int) -> Iterator[Wanted]:
    for i in range(min(count, MOST_EXCLUSIVE)):
        name, labels = f"{prefix}-exclusive-{i}", {EXCLUSIVE: "yes"}
        yield Wanted(name=name, kind="exclusive", at=0, pool="exclusive", labels=labels)


def _limited(prefix: str, count: int) -> Iterator[Wanted]:
    for i in range(min(count, MOST_LIMITED)):
        name, labels = f"{prefix}-limited-{i}", {LIMITED: "yes"}
        yield Wanted(name=name, kind="limited", at=0, pool="limited", labels=labels)


def _replaced(prefix: str, count: int, seconds: float, rng: random.Random) -> Iterator[Wanted]:
    """Pods that make place soon for others of their names, which belong into another pool."""
    for i in range(count):
        name, at = f"{prefix}-replaced-{i}", rng.uniform(0, seconds * 0.8)
        yield Wanted(name=name, kind="replaced", at=at, pool="a")
        later = at + rng.uniform(0.01, 0.4)
        yield Wanted(name=name, kind="replaced", at=later, pool="b", replaces=True)


def _crowd(prefix: str, seconds: float) -> Iterator[Wanted]:
    """Pods that fill two nodes, and more important ones that evict most of them later."""
    for i in range(EVICTABLE_PODS):
        yield Wanted(name=f"{prefix}-evictable-{i}", kind="evictable", at=0, pool="crowded")
    for i in range(IMPORTANT_PODS):
        at = seconds * (0.4 + 0.2 * i)
        yield Wanted(name=f"{prefix}-important-{i}", kind="important", at=at, pool="crowded")
