"""What waits in the queue comes in kube-scheduler's order: each row is what happens, step by step.

`put a b:7` puts pods (b with priority 7), `take a` begins an attempt, `fail PLUGINS` ends it (a
new one if none was begun), `done` ends it for good, `pop a -` expects pod a and then none, `wait 2`
expects that nothing is due for 2 s, `pass 2` lets 2 s pass; a word in capitals is an event.
"""

import re

import pytest

from moorage_host.kube_scheduler.queue import (
    MAX_UNSCHEDULABLE_SECONDS,
    ClusterEvent,
    QueuedPod,
    SchedulingQueue,
)
from tests.sandbox.scheduler.support import known_pod

PLUGINS = {
    "error": frozenset[str](),
    "extender": frozenset({"Extender"}),
    "resources": frozenset({"NodeResourcesFit"}),
    "both": frozenset({"Extender", "NodeResourcesFit"}),
}


class Desk:
    """A queue with its clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.queue = SchedulingQueue(initial_backoff=1, max_backoff=10, clock=lambda: self.now)
        self.taken: QueuedPod | None = None

    def take(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued
        return queued

    def pop(self) -> str:
        queued = self.queue.pop()
        return queued.pod.pod.name if queued else "-"

    def play(self, steps: str) -> None:
        for step in re.split(r",\s+", steps):
            verb, *words = step.split()
            match verb:
                case "put":
                    for word in words:
                        name, _, priority = word.partition(":")
                        self.queue.put(known_pod(name, priority=int(priority or 0)))
                        self.now += 0.001
                case "take":
                    self.taken = self.take()
                    assert self.taken.pod.pod.name == words[0], step
                case "fail":
                    self.queue.retry(self.taken or self.take(), PLUGINS[words[0]])
                    self.taken = None
                case "done":
                    self.queue.done(self.taken or self.take())
                    assert len(self.queue) == 0, step
                case "discard":
                    self.queue.discard(words[0])
                    assert len(self.queue) == 0, step
                case "pop":
                    assert [self.pop() for _ in words] == words, step
                case "wait":
                    assert self.queue.wait() == float(words[0]), step
                case "pass":
                    self.now += float(words[0])
                case _:
                    self.queue.happened(ClusterEvent[verb])


BACKOFFS = ", ".join(f"fail error, wait {n}, pass {n}" for n in (1, 2, 4, 8, 10, 10))
REJECTED = "pass 2, NODE_CHANGED"
LONGEST = MAX_UNSCHEDULABLE_SECONDS


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("put a b urgent:10, pop urgent a b -", id="priority, then who came first"),
        pytest.param(f"put a, {BACKOFFS}", id="errors back off 1, 2, 4, 8, 10, 10 seconds"),
        pytest.param(
            "put a, fail error, NODE_CHANGED, pop -, pass 1, pop a",
            id="an error's backoff is not cut short",
        ),
        pytest.param(
            f"put a, fail error, {REJECTED}, fail error, {REJECTED}, fail extender, {REJECTED}, "
            "fail error, wait 1",
            id="errors count from one again after a rejection",
        ),
        pytest.param(
            "put a, fail resources, pass 60, pop -, POD_DELETED, pop a",
            id="a rejected pod waits for an event",
        ),
        pytest.param(
            "put rejected, fail extender, put fresh fresher, POD_ADDED, pop fresh fresher rejected",
            id="a rejected pod skips its backoff only if nothing else is to be done",
        ),
        pytest.param(
            "put rejected:5, fail extender, POD_ADDED, put fresh, pass 1, pop rejected fresh",
            id="after its backoff a rejected pod queues by priority",
        ),
        pytest.param(
            "put a, fail resources, POD_ADDED, OWN_STATUS_CHANGED, pop -",
            id="only events that may help move a pod",
        ),
        *(
            pytest.param(
                f"put a, fail both, {event.name}, pop a", id=f"an extender's: {event.name}"
            )
            for event in ClusterEvent
        ),
        pytest.param(
            "put a, take a, NODE_CHANGED, fail resources, pop a",
            id="an event during the attempt counts after it",
        ),
        pytest.param(
            "put a b, pop a, NODE_CHANGED, fail resources, pop -",
            id="an event of an earlier attempt does not count",
        ),
        pytest.param(
            "put a, fail extender, put a, pop a",
            id="a changed status of its own moves a pod that an extender rejected",
        ),
        pytest.param(
            "put a, fail resources, put a, pop -, put a:7, pop a",
            id="a changed spec of its own moves any pod",
        ),
        pytest.param(
            f"put a, fail resources, wait {LONGEST}, pass {LONGEST - 1}, pop -, pass 1, pop a",
            id="nobody waits longer than five minutes",
        ),
        *(
            pytest.param(
                f"put a, fail {why}discard a, pass 1000, pop -",
                id=f"a discarded pod does not come back: {why}",
            )
            for why in ("error, ", "extender, NODE_CHANGED, ", "resources, ")
        ),
        pytest.param("put a, done, put a, pop a", id="a pod that is done may be put again"),
    ],
)
def test_pods_come_in_kube_schedulers_order(steps: str) -> None:
    Desk().play(steps)


def test_all_pods_are_tried_again_at_once_whatever_they_wait_for() -> None:
    desk = Desk()
    desk.play("put rejected backs-off broken tried, fail resources, fail extender")
    desk.play("POD_ADDED, fail error, take tried, put ready")  # helps what an extender rejected
    assert desk.queue.retry_all() == 3
    desk.play("fail extender")  # its attempt may have begun before what has changed
    assert sorted(desk.pop() for _ in range(4)) == ["backs-off", "broken", "ready", "rejected"]
    desk.play("pop tried -")


def test_the_latest_state_of_a_pod_is_handed_out() -> None:
    desk = Desk()
    desk.play("put a a:3")
    assert desk.take().pod.pod.spec.priority == 3
    desk.play("pop -")
