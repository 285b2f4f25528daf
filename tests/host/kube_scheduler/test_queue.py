from moorage_host.kube_scheduler.queue import (
    MAX_UNSCHEDULABLE_SECONDS,
    ClusterEvent,
    SchedulingQueue,
)
from tests.sandbox.scheduler.support import known_pod

EXTENDER = frozenset({"Extender"})
RESOURCES = frozenset({"NodeResourcesFit"})
ERROR: frozenset[str] = frozenset()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A queue with its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = SchedulingQueue(initial_backoff=1, max_backoff=10, clock=self.clock)

    def put(self, *names: str, priority: int = 0) -> None:
        for name in names:
            self.queue.put(known_pod(name, priority=priority))
            self.clock.now += 0.001

    def fail(self, plugins: frozenset[str]) -> None:
        queued = self.queue.pop()
        assert queued
        self.queue.retry(queued, plugins)

    def pop(self) -> str | None:
        queued = self.queue.pop()
        return queued.pod.pod.name if queued else None

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


def test_higher_priority_comes_first_then_who_came_first() -> None:
    desk = Desk()
    desk.put("a", "b")
    desk.put("urgent", priority=10)
    assert [desk.pop() for _ in range(4)] == ["urgent", "a", "b", None]


def test_errors_back_off_1_2_4_8_10_10_seconds() -> None:
    desk = Desk()
    desk.put("a")
    waits = []
    for _ in range(6):
        desk.fail(ERROR)
        wait = desk.queue.wait()
        assert wait is not None
        waits.append(wait)
        desk.pass_time(wait)
    assert waits == [1, 2, 4, 8, 10, 10]


def test_an_error_backoff_is_not_cut_short() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(ERROR)
    desk.queue.happened(ClusterEvent.NODE_CHANGED)
    assert desk.pop() is None
    desk.pass_time(1)
    assert desk.pop() == "a"


def test_errors_count_from_one_again_after_a_rejection() -> None:
    desk = Desk()
    desk.put("a")
    for plugins in (ERROR, ERROR, EXTENDER):
        desk.fail(plugins)
        desk.pass_time(2)
        desk.queue.happened(ClusterEvent.NODE_CHANGED)
    desk.fail(ERROR)
    assert desk.queue.wait() == 1


def test_a_rejected_pod_waits_for_an_event() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(RESOURCES)
    desk.pass_time(60)
    assert desk.pop() is None
    desk.queue.happened(ClusterEvent.POD_DELETED)
    assert desk.pop() == "a"


def test_a_rejected_pod_skips_its_backoff_only_if_nothing_else_is_to_be_done() -> None:
    desk = Desk()
    desk.put("rejected")
    desk.fail(EXTENDER)
    desk.put("fresh", "fresher")
    desk.queue.happened(ClusterEvent.POD_ADDED)
    assert [desk.pop() for _ in range(3)] == ["fresh", "fresher", "rejected"]


def test_after_its_backoff_a_rejected_pod_queues_by_priority() -> None:
    desk = Desk()
    desk.put("rejected", priority=5)
    desk.fail(EXTENDER)
    desk.queue.happened(ClusterEvent.POD_ADDED)
    desk.put("fresh")
    desk.pass_time(1)
    assert [desk.pop(), desk.pop()] == ["rejected", "fresh"]


def test_only_events_that_may_help_move_a_pod() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(RESOURCES)
    for useless in (ClusterEvent.POD_ADDED, ClusterEvent.OWN_STATUS_CHANGED):
        desk.queue.happened(useless)
    assert desk.pop() is None


def test_any_event_moves_a_pod_that_an_extender_rejected() -> None:
    for event in ClusterEvent:
        desk = Desk()
        desk.put("a")
        desk.fail(EXTENDER | RESOURCES)
        desk.queue.happened(event)
        assert desk.pop() == "a", event


def test_an_event_during_the_attempt_counts_after_it() -> None:
    desk = Desk()
    desk.put("a")
    queued = desk.queue.pop()
    assert queued
    desk.queue.happened(ClusterEvent.NODE_CHANGED)
    desk.queue.retry(queued, RESOURCES)
    assert desk.pop() == "a"


def test_an_event_of_an_earlier_attempt_does_not_count() -> None:
    desk = Desk()
    desk.put("a", "b")
    assert desk.pop() == "a"
    desk.queue.happened(ClusterEvent.NODE_CHANGED)
    desk.fail(RESOURCES)
    assert desk.pop() is None


def test_a_changed_status_of_its_own_moves_a_pod_that_an_extender_rejected() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(EXTENDER)
    desk.put("a")
    assert desk.pop() == "a"


def test_a_changed_spec_of_its_own_moves_any_pod() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(RESOURCES)
    desk.put("a")
    assert desk.pop() is None
    desk.put("a", priority=7)
    assert desk.pop() == "a"


def test_nobody_waits_longer_than_five_minutes() -> None:
    desk = Desk()
    desk.put("a")
    desk.fail(RESOURCES)
    assert desk.queue.wait() == MAX_UNSCHEDULABLE_SECONDS
    desk.pass_time(MAX_UNSCHEDULABLE_SECONDS - 1)
    assert desk.pop() is None
    desk.pass_time(1)
    assert desk.pop() == "a"


def test_all_pods_are_tried_again_at_once_whatever_they_wait_for() -> None:
    desk = Desk()
    desk.put("rejected", "backs-off", "broken", "tried")
    desk.fail(RESOURCES)
    desk.fail(EXTENDER)
    desk.queue.happened(ClusterEvent.POD_ADDED)  # helps only the pod that an extender rejected
    desk.fail(ERROR)
    tried = desk.queue.pop()
    assert tried
    desk.put("ready")
    assert desk.queue.retry_all() == 3
    desk.queue.retry(tried, EXTENDER)  # its attempt may have begun before what has changed
    popped = [desk.pop() for _ in range(6)]
    assert sorted(filter(None, popped[:4])) == ["backs-off", "broken", "ready", "rejected"]
    assert popped[4:] == ["tried", None]


def test_a_discarded_pod_does_not_come_back_from_any_queue() -> None:
    desk = Desk()
    for plugins in (ERROR, EXTENDER, RESOURCES):
        desk.put("a")
        desk.fail(plugins)
        if plugins == EXTENDER:
            desk.queue.happened(ClusterEvent.NODE_CHANGED)
        desk.queue.discard("a")
        desk.pass_time(1000)
        assert desk.pop() is None
        assert len(desk.queue) == 0


def test_a_pod_that_is_done_may_be_put_again() -> None:
    desk = Desk()
    desk.put("a")
    queued = desk.queue.pop()
    assert queued
    desk.queue.done(queued)
    assert len(desk.queue) == 0
    desk.put("a")
    assert desk.pop() == "a"


def test_the_latest_state_of_a_pod_is_handed_out() -> None:
    desk = Desk()
    desk.put("a")
    desk.put("a", priority=3)
    queued = desk.queue.pop()
    assert queued
    assert queued.pod.pod.spec.priority == 3
    assert desk.pop() is None
