"""Which segments of a journal are deleted first."""

from pathlib import Path

from gateway.journal.segments import Segment, remove_oldest, segments_in


def test_segments_of_the_future_do_not_make_a_gateway_delete_its_own(tmp_path: Path) -> None:
    future = [tmp_path / f"2999010{day}T000000.000000Z-1.journal" for day in range(1, 5)]
    for path in future:
        path.write_bytes(b"")
    own = [Segment(tmp_path, number) for number in (1, 2, 3)]
    remove_oldest(tmp_path, 2)
    assert segments_in(tmp_path) == [segment.path for segment in own[1:]]
    for segment in own:
        segment.discard()
