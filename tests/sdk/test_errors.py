"""Near names are found among a few names, and among those of all nodes of a large cluster."""

import sys
from types import FrameType

import pytest

from moorage.errors import suggestion

NODES = [f"ip-10-{i // 256}-{i % 256}-17.eu-central-1.compute.internal" for i in range(5000)]


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("Fliter", ["Filter", "Score"], "Filter"),
        ("filter", ["Filter", "Score"], "Filter"),
        ("cpu", ["Filter", "Score"], ""),
        ("ip-10-3-4-18.eu-central-1.compute.internal", NODES, NODES[3 * 256 + 4]),
        ("ip-10-3-4-17.eu-central-1.compute.interna", NODES, NODES[3 * 256 + 4]),
        ("p-10-3-4-17.eu-central-1.compute.internal", NODES, NODES[3 * 256 + 4]),
        ("IP-10-3-4-17.eu-centrl-1.compute.internal", NODES, NODES[3 * 256 + 4]),
        ("zebra", NODES, ""),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], near: str) -> None:
    assert suggestion(name, known) == (f", did you mean `{near}`?" if near else "")


def test_few_of_many_names_are_compared_letter_by_letter() -> None:
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_name == "find_longest_match"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        suggestion("ip-10-3-4-18.eu-central-1.compute.internal", NODES)
    finally:
        sys.setprofile(before)
    assert 0 < calls < 2000
