"""Which pods are refused after crashes of replicas, for how long, and who is innocent."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gateway.cluster.state import ClusterState
from gateway.replicas.crashes import (
    FIRST_WAIT,
    FORGET_SECONDS,
    LONGEST_WAIT,
    MOST_LOST,
    MOST_PODS,
    MOST_SHOWN,
    NOBODY,
    SEVERAL,
    SUSPENSION_SECONDS,
    CrashSuspects,
)
from gateway.replicas.feed import StateFeed
from gateway.replicas.kinds import FILTER
from gateway.replicas.metrics import ReplicaMetrics, SessionMetrics
from gateway.replicas.session import Session
from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.execution import mark
from moorage.execution.overruns import Owner
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc import former
from moorage_host.rpc.settings import CycleSettings
from moorage_host.tls.security import LOOPBACK
from tools.inprocess.gateway import filter_service

POISON, OTHER = ("shop", "poison"), ("shop", "other")


@dataclass
class Crashes:
    """Replicas at one address that crash one after another."""

    now: float = 1000.0
    count: int = 0
    suspects: CrashSuspects = field(init=False)

    def __post_init__(self) -> None:
        self.suspects = CrashSuspects("filter", lambda: self.now)

    def crash(
        self, *owners: Owner, mark: Owner | None = None, same: bool = False, **more: Any
    ) -> None:
        """Have the replica that works on *owners* replaced, by itself if it is the *same*."""
        sent, self.count = self.now, self.count + 1
        name = f"r{self.count}"
        self.suspects.lost("here", name, "v1", [(owner, sent) for owner in owners])
        self.now += 1
        former = pb.FormerProcess()
        if mark is not None:
            former = pb.FormerProcess(replica=name, namespace=mark[0], pod=mark[1], **more)
        self.suspects.found("here", name if same else f"r{self.count + 1}", former)

    def refused(self, owner: Owner = POISON, version: str = "v1") -> dict[str, str]:
        return dict(self.suspects.refusals(owner, version))


def test_the_first_crash_refuses_nobody_and_each_further_one_for_twice_as_long() -> None:
    crashes = Crashes()
    crashes.crash(POISON)
    assert not crashes.refused()
    wait = FIRST_WAIT
    for count in range(2, 10):
        crashes.crash(POISON)
        (why,) = crashes.refused().values()
        assert f"a replica of filter ended while it worked on this pod, {count} times" in why
        assert not crashes.refused(OTHER)
        crashes.now += wait - 0.1
        assert crashes.refused()
        crashes.now += 0.2
        assert not crashes.refused()
        wait = min(2 * wait, LONGEST_WAIT)
    crashes.now += FORGET_SECONDS
    assert not crashes.refused()
    assert not crashes.suspects.pods


def test_the_plugin_of_the_mark_is_named_and_no_other_is_refused() -> None:
    crashes = Crashes()
    for _ in range(2):
        crashes.crash(OTHER, POISON, mark=POISON, plugin="NotHot", end="SIGSEGV")
    assert crashes.refused() == {
        "NotHot": "a replica of filter ended (SIGSEGV) while this plugin ran for this pod, 2 times;"
        " tried again after 30 s"
    }
    assert not crashes.refused(OTHER)
    assert not crashes.refused(version="v2"), "a new version of the plugin may be right"
    (problem,) = crashes.suspects.problems()
    assert problem == (
        "a replica of filter ended (SIGSEGV) while plugin NotHot ran for pod shop/poison, 2 times"
    )


class LongName(FilterPlugin):
    name = "Long" * 40

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


async def test_a_plugin_is_named_whole_though_its_mark_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former, "FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(mark, "memory", bytearray(mark.SIZE))
    mark.memory[mark.PLUGIN] = mark.marked(LongName.name)
    mark.memory[mark.POD : mark.POD + 5] = b"a/pod"
    (former._folder() / f"{CycleSettings().port}-1").write_bytes(mark.memory)
    metrics = SessionMetrics(ReplicaMetrics(CollectorRegistry()), "filter")
    async with filter_service(LongName) as address:
        session = Session(FILTER, StateFeed(ClusterState()), metrics, LOOPBACK, address)
        assert (await session.greet(10)).plugin == LongName.name
        await session.close()


@pytest.mark.parametrize(
    ("owners", "more"),
    [
        pytest.param([POISON, OTHER], {}, id="several were under way, and nothing tells which"),
        pytest.param([POISON], {"same": True}, id="the same process answers: a broken session"),
        pytest.param([POISON], {"mark": ("", "")}, id="the process worked on nothing"),
        pytest.param([POISON], {"mark": OTHER}, id="it worked on what others had asked for"),
        pytest.param([NOBODY], {}, id="a shadow ran"),
        pytest.param([], {"mark": POISON}, id="nothing was under way here"),
    ],
)
def test_nobody_is_blamed_without_certainty(owners: list[Owner], more: dict[str, Any]) -> None:
    crashes = Crashes()
    for _ in range(3):
        crashes.crash(*owners, **more)
    assert not crashes.suspects.pods


def test_replicas_that_had_a_pod_at_once_count_once() -> None:
    crashes = Crashes()
    for place in ("a", "b", "c"):
        crashes.suspects.lost(place, f"of {place}", "v1", [(POISON, crashes.now)])
    for place in ("a", "b", "c"):
        crashes.now += 1
        crashes.suspects.found(place, f"new {place}", pb.FormerProcess())
    assert crashes.suspects.pods[POISON].count == 1


def test_a_replica_whose_address_is_gone_has_crashed() -> None:
    crashes = Crashes()
    crashes.suspects.lost("here", "r1", "v1", [(POISON, 0.0)])
    crashes.suspects.gone("here")
    assert crashes.suspects.pods[POISON].count == 1


@pytest.mark.parametrize(
    ("owners", "whom"),
    [
        ([("shop", f"p{i}") for i in range(SEVERAL)], [("shop", "innocent")]),
        ([(f"team-{i}", "p") for i in range(SEVERAL)], [("shop", "x"), ("other", "y")]),
    ],
)
def test_after_several_pods_the_plugin_is_suspended(owners: list[Owner], whom: list[Owner]) -> None:
    crashes = Crashes()
    for owner in owners:
        assert not crashes.refused(whom[0])
        for _ in range(2):
            crashes.crash(owner, mark=owner, plugin="NotHot")
    for innocent in whom:
        assert "suspended for 10 min" in crashes.refused(innocent)["NotHot"]
    assert bool(crashes.refused(("elsewhere", "z"))) == (len(whom) > 1)
    assert any("plugin NotHot is suspended" in each for each in crashes.suspects.problems())
    crashes.now += SUSPENSION_SECONDS
    assert not crashes.refused(whom[0])


def test_what_is_kept_is_bounded() -> None:
    crashes = Crashes()
    for number in range(MOST_PODS + 10):
        crashes.crash(("shop", f"p{number}"))
    assert len(crashes.suspects.pods) == MOST_PODS
    for number in range(MOST_SHOWN + 1):
        crashes.crash(("shop", f"p{MOST_PODS - number}"))
    assert len(list(crashes.suspects.problems())) == MOST_SHOWN
    for number in range(MOST_LOST + 10):
        crashes.suspects.lost(f"place-{number}", f"lost-{number}", "v1", [(POISON, 0.0)])
    assert len(crashes.suspects.lost_replicas) == MOST_LOST
