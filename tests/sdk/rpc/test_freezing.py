"""What survives long collections is frozen, but garbage does not pile up."""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from moorage.rpc.freezing import Freezer


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


def test_cycles_that_were_frozen_are_freed_before_memory_doubles_twice(
    freezer: Freezer, later: Later
) -> None:
    gc.collect()
    alive = gc.get_freeze_count()
    first = Cyclic()
    gone = weakref.ref(first)
    gc.collect()  # frozen, alive
    del first
    gc.collect()
    assert gone() is not None
    more: list[Cyclic] = []
    while gc.get_freeze_count() and len(more) < 8:
        more.append(Cyclic(alive // 4))
        gc.collect()
    assert gc.get_freeze_count() == 0
    later.run()
    assert gone() is None
    assert gc.get_freeze_count() > alive


def test_what_is_frozen_is_not_counted_after_each_collection(
    freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    counted, count = list[int](), gc.get_freeze_count

    def counting() -> int:
        counted.append(1)
        return count()

    monkeypatch.setattr(gc, "get_freeze_count", counting)
    for _ in range(20):
        gc.collect()
    assert not counted


def test_what_comes_and_goes_does_not_have_everything_looked_at(
    freezer: Freezer,
) -> None:
    gc.collect()
    alive = gc.get_freeze_count()
    for _ in range(12):
        kept = [[number] for number in range(alive // 4)]
        gc.collect()
        assert kept
        kept.clear()
        assert gc.get_freeze_count() > 0


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
