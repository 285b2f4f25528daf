import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from moorage import Pod
from moorage.models import Metadata, decode_pod, encode
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import FIRST_CAPACITY, HORIZON, MAX_COLUMNS, Placements, placed_at
from moorage.testing import make_node, make_pod
from moorage_host.plugins import Replica


@dataclass
class Clock:
    now: float = 5000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Cluster:
    """Three nodes, of which row 2 is not selected, and a clock."""

    clock: Clock = field(default_factory=Clock)
    snapshot: Snapshot = field(default_factory=Snapshot)

    def __post_init__(self) -> None:
        self.snapshot.placements = Placements(self.clock)
        for row in range(3):
            self.snapshot.set_node(row, make_node(f"n{row}"))

    def place(self, row: int, name: str, cpu: str = "100m", ago: float | None = None) -> None:
        since = None if ago is None else self.clock.now - ago
        self.snapshot.place_pod(row, make_pod(name, requests={"cpu": cpu}), since=since)

    def remove(self, name: str) -> None:
        self.snapshot.remove_pod(make_pod(name).uid)

    def placed(self, within: float | list[float] = 60, fading: float = 0) -> list[float]:
        span = np.array(within) if isinstance(within, list) else within
        nodes = self.snapshot.nodes(np.array([1, 0]))
        totals: list[float] = nodes.newly_placed("cpu", cpu, within=span, fading=fading).tolist()
        return totals


def cpu(pod: Pod) -> float:
    return pod.requests.get("cpu", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_pods_count_until_they_have_been_there_for_long_enough(cluster: Cluster) -> None:
    cluster.place(0, "a", "100m")
    cluster.clock.now += 40
    cluster.place(0, "b", "20m")
    cluster.place(1, "c", "3m")
    cluster.place(2, "elsewhere", "1")
    assert cluster.placed() == [3, 120]
    cluster.clock.now += 20
    assert cluster.placed() == [3, 20]
    cluster.clock.now += 40
    assert cluster.placed() == [0, 0]


def test_a_change_of_a_pod_is_no_new_placement_but_counts(cluster: Cluster) -> None:
    cluster.place(0, "a", "100m")
    assert cluster.placed() == [0, 100]
    cluster.clock.now += 59
    cluster.place(0, "a", "200m")
    assert cluster.placed() == [0, 200]
    cluster.clock.now += 1
    assert cluster.placed() == [0, 0]


def test_a_pod_that_moves_or_comes_back_is_placed_anew(cluster: Cluster) -> None:
    cluster.place(0, "moves", "100m", ago=90)
    cluster.place(0, "comes back", "20m", ago=90)
    assert cluster.placed() == [0, 0]
    cluster.place(1, "moves", "100m")
    cluster.remove("comes back")
    cluster.place(0, "comes back", "20m")
    assert cluster.placed() == [100, 20]


def test_a_cycle_that_leaves_pods_out_does_not_make_them_new(cluster: Cluster) -> None:
    cluster.place(0, "old", ago=HORIZON + 1)
    cluster.place(0, "late", ago=50)
    cluster.place(1, "on a node that is overridden", ago=50)
    uids = [make_pod(name).uid for name in ("old", "late")]
    with cluster.snapshot.overlaid({1: make_node("other")}, uids):
        assert cluster.placed() == [0, 0]
    assert cluster.placed() == [100, 100]
    assert cluster.placed(50) == [0, 0]


def test_what_is_older_than_the_horizon_is_forgotten(cluster: Cluster) -> None:
    cluster.place(0, "a")
    cluster.clock.now += HORIZON + 1
    assert cluster.placed(2 * HORIZON, fading=HORIZON) == [0, 0]
    for number in range(3 * FIRST_CAPACITY):
        cluster.place(1, str(number), "1m")
    assert cluster.placed() == [3 * FIRST_CAPACITY, 0]
    assert len(cluster.snapshot.placements) == 3 * FIRST_CAPACITY
    cluster.clock.now += HORIZON + 1
    cluster.place(0, "the log is not full yet")
    for number in range(FIRST_CAPACITY):
        cluster.place(1, f"{number} more", "1m")
    assert len(cluster.snapshot.placements) == FIRST_CAPACITY + 1
    assert cluster.placed() == [FIRST_CAPACITY, 100]


def test_an_amount_is_asked_for_once(cluster: Cluster) -> None:
    asked: list[str] = []

    def amount(pod: Pod) -> float:
        asked.append(pod.name)
        return 1

    def total(key: object = "x", count: Callable[[Pod], float] = amount) -> list[float]:
        nodes = cluster.snapshot.nodes()
        totals: list[float] = nodes.newly_placed(("test", key), count, within=60).tolist()
        return totals

    cluster.place(0, "a")
    cluster.place(0, "old", ago=70)
    assert total() == total() == [1, 0, 0]
    cluster.place(1, "b")
    assert total() == [1, 1, 0]
    assert asked == ["a", "b"]
    for key in range(MAX_COLUMNS):
        assert total(key, lambda pod: 2) == [2, 2, 0]
    assert total() == [1, 1, 0]
    assert asked == ["a", "b", "a", "b"]


def test_a_full_snapshot_brings_old_pods_unless_they_were_created_of_late() -> None:
    replica = Replica()
    replica.set_nodes([(0, encode(make_node("n0")))])
    now = datetime.now(UTC)

    def pod(name: str, created: datetime | None) -> bytes:
        text = "" if created is None else created.isoformat().replace("+00:00", "Z")
        bare = make_pod(name, requests={"cpu": "1m"})
        metadata = Metadata(name=name, uid=bare.uid, creation_timestamp=text)
        return encode(Pod(metadata=metadata, spec=bare.spec))

    def placed(within: float) -> float:
        return float(replica.snapshot.nodes().newly_placed("cpu", cpu, within=within)[0])

    replica.place_pods(
        [
            (0, pod("old", now - timedelta(hours=2))),
            (0, pod("not said", None)),
            (0, pod("late", now - timedelta(seconds=100))),
            (0, pod("by a fast clock", now + timedelta(seconds=100))),
        ]
    )
    replica.generation = 1
    assert placed(1000) == 2
    assert placed(90) == 1
    replica.place_pods([(0, pod("pended for long", now - timedelta(hours=2)))])
    assert placed(90) == 2


SCHEDULED = {"type": "PodScheduled", "status": "True"}


@pytest.mark.parametrize(
    ("status", "seconds"),
    [
        ({"conditions": [SCHEDULED | {"lastTransitionTime": "T20"}], "startTime": "T10"}, 20),
        ({"conditions": [SCHEDULED], "startTime": "T10"}, 10),
        ({"conditions": [{"type": "Ready", "lastTransitionTime": "T30"}], "startTime": "T10"}, 10),
        ({"startTime": "T10", "phase": "Running"}, 10),
        ({"phase": "Running"}, 3600),
        ({"phase": "Pending"}, 0),
        ({}, 3600),
    ],
)
def test_after_a_restart_a_pod_counts_from_when_it_was_scheduled(
    status: dict[str, Any], seconds: float
) -> None:
    """Not from its creation, an hour ago; T10 is ten seconds ago."""
    now = datetime.now(UTC)

    def ago(count: float) -> str:
        return (now - timedelta(seconds=count)).isoformat().replace("+00:00", "Z")

    text = re.sub(r"T(\d+)\b", lambda found: ago(int(found[1])), json.dumps({"status": status}))
    obj = {
        **json.loads(text),
        "metadata": {"name": "p", "uid": "p", "creationTimestamp": ago(3600)},
        "spec": {"nodeName": "n0", "containers": [{"name": "c"}]},
    }
    pod = decode_pod(json.dumps(obj))
    for each in (pod, decode_pod(encode(pod))):  # as replicas get it
        assert 5000.0 - placed_at(each, 5000.0) == pytest.approx(seconds, abs=5)
