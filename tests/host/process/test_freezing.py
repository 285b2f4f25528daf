"""What survives long collections is frozen, but garbage does not pile up."""

import gc
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from moorage_host.process.freezing import Freezer


class Cyclic:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self, size: int = 0) -> None:
        self.me = self
        self.more = [[number] for number in range(size)]


class Later:
    """Calls later what it is asked to."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], object]] = []

    def __call__(self, work: Callable[[], object]) -> None:
        self.asked.append(work)

    def run(self) -> None:
        while self.asked:
            self.asked.pop()()


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture
def freezer(later: Later) -> Iterator[Freezer]:
    made = Freezer(later, longest=0.0)
    yield made
    made.stop()


def test_what_survives_a_long_full_collection_is_frozen(freezer: Freezer) -> None:
    kept = [[number] for number in range(10_000)]
    gc.collect(1)
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert gc.get_freeze_count() >= len(kept)


def test_a_short_collection_freezes_nothing() -> None:
    made = Freezer(Later(), longest=60.0)
    gc.collect()
    assert gc.get_freeze_count() == 0
    made.stop()


def test_what_is_frozen_is_freed_with_its_last_reference(freezer: Freezer) -> None:
    kept = [[number] for number in range(10_000)]
    gc.collect()
    before = gc.get_freeze_count()
    kept.clear()
    assert gc.get_freeze_count() <= before - 10_000


def test_cycles_that_were_frozen_are_freed_once_many_more_objects_came(later: Later) -> None:
    made = Freezer(later, longest=0.0, spare=300_000 + len(gc.get_objects()))
    gc.collect()
    first = Cyclic()
    gone = weakref.ref(first)
    gc.collect()  # frozen, alive
    del first
    gc.collect()
    later.run()
    assert gone() is not None
    more: list[Cyclic] = []
    while gone() is not None and len(more) < 10:
        more.append(Cyclic(100_000))
        gc.collect()
        later.run()
    alive = gc.get_freeze_count()
    made.stop()
    assert gone() is None
    assert alive > 100_000 * len(more)


def test_garbage_in_cycles_never_is_more_than_may_be_spared(later: Later) -> None:
    gc.collect()
    others = len(gc.get_objects())
    made = Freezer(later, longest=0.0, spare=200_000)
    most = 0
    for _ in range(12):
        leak = Cyclic(50_000)
        gc.collect()  # frozen, alive
        later.run()
        del leak
        most = max(most, gc.get_freeze_count())
    made.stop()
    assert most <= others + max(others, 200_000) + 3 * 50_000


def test_what_is_alive_is_looked_at_again_only_after_as_much_more(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, unfreeze = list[int](), gc.unfreeze

    def unfreezing() -> None:
        looks.append(gc.get_freeze_count())
        unfreeze()

    made = Freezer(later, longest=0.0, spare=200_000)
    monkeypatch.setattr(gc, "unfreeze", unfreezing)
    kept: list[Cyclic] = []
    while len(looks) < 3:
        kept.append(Cyclic(100_000))
        gc.collect()
        later.run()
    monkeypatch.undo()
    made.stop()
    assert all(now - before > 200_000 for before, now in pairwise(looks))
    assert all(now > 1.9 * before for before, now in pairwise(looks))


def test_what_is_frozen_is_not_counted_after_each_collection(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Freezer(later, longest=0.0, spare=300_000 + len(gc.get_objects()))
    gc.collect()
    counted, count = list[int](), gc.get_freeze_count

    def counting() -> int:
        counted.append(1)
        return count()

    monkeypatch.setattr(gc, "get_freeze_count", counting)
    for _ in range(20):
        gc.collect()
    made.stop()
    assert not counted


def test_whoever_does_much_without_a_pause_has_it_looked_at_once(later: Later) -> None:
    made = Freezer(later, longest=0.0, spare=0)
    for _ in range(20):
        gc.collect()
    assert len(later.asked) == 1
    later.run()
    gc.collect()
    assert len(later.asked) == 1
    made.stop()


def test_what_comes_and_goes_does_not_have_everything_looked_at(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Freezer(later, longest=0.0, spare=150_000 + len(gc.get_objects()))
    with monkeypatch.context() as patched:
        patched.setattr(gc, "unfreeze", lambda: pytest.fail("it looks at everything"))
        for _ in range(12):
            kept = [[number] for number in range(50_000)]
            gc.collect()
            later.run()
            assert kept
            kept.clear()
    made.stop()


def test_a_full_collection_comes_soon_after_everything_was_frozen(
    freezer: Freezer, later: Later
) -> None:
    kept = [[number] for number in range(400_000)]
    gc.collect()
    later.run()
    full = gc.get_stats()[2]["collections"]
    gc.enable()
    kept += [[number] for number in range(50_000)]
    gc.disable()
    assert gc.get_stats()[2]["collections"] > full


def test_the_end_leaves_nothing_frozen() -> None:
    before = gc.get_threshold()
    made = Freezer(Later(), longest=0.0)
    gc.collect()
    made.stop()
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before
