"""A campaign can be repeated from its seed."""

from tools.chaos.faults import Extent
from tools.chaos.schedule import ONE_GATEWAY, rounds


def test_the_same_seed_gives_the_same_schedule() -> None:
    first, second = (list(rounds(7, Extent(), ONE_GATEWAY)) for _ in range(2))
    assert first == second
    assert first != list(rounds(8, Extent(), ONE_GATEWAY))


def test_a_round_is_the_same_whichever_others_run() -> None:
    everything = list(rounds(7, Extent(), ONE_GATEWAY))
    assert everything[3:] == list(rounds(7, Extent(), ONE_GATEWAY))[3:]
