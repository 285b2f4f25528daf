"""The garbage collector leaves a large initial state alone, but what it holds can be freed."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from moorage_host.process.freezing import MANY_PODS, freeze_heap


class Cyclic:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_large_state_is_excluded_from_collections() -> None:
    kept = [[number] for number in range(10_000)]
    freeze_heap(MANY_PODS)
    assert gc.get_freeze_count() >= len(kept)
    assert len(gc.get_objects()) < len(kept)


def test_a_small_state_is_not() -> None:
    freeze_heap(MANY_PODS - 1)
    assert gc.get_freeze_count() == 0


def test_what_is_frozen_is_freed_with_its_last_reference() -> None:
    kept = [[number] for number in range(10_000)]
    freeze_heap(MANY_PODS)
    before = gc.get_freeze_count()
    kept.clear()
    assert gc.get_freeze_count() <= before - 10_000


def test_garbage_of_the_former_state_is_freed_when_the_next_is_complete() -> None:
    state = Cyclic()
    gone = weakref.ref(state)
    freeze_heap(MANY_PODS)
    del state
    gc.collect()
    assert gone() is not None
    freeze_heap(MANY_PODS)
    assert gone() is None
