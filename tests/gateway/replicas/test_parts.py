"""A state that is too long for one message."""

from gateway.replicas.feed import PART_BYTES, in_parts
from moorage.v1 import types_pb2 as pb

CONTENT = b"x" * 300_000
KIND = pb.ObjectKind(api_version="apps/v1", plural="statefulsets")


def state(count: int) -> pb.State:
    """Return a change with so many nodes, pods and objects of 300 kB each."""
    return pb.State(
        generation=7,
        removed_rows=[90],
        removed_pods=["gone"],
        kinds=[KIND],
        nodes=[pb.NodeRow(row=row, json=CONTENT) for row in range(count)],
        pods=[pb.PlacedPod(row=row, json=CONTENT) for row in range(count)],
        objects=[
            pb.Object(reference=pb.ObjectReference(kind=KIND, name=f"{i}"), json=CONTENT)
            for i in range(count)
        ],
    )


def test_a_long_state_is_sent_in_parts_that_make_it_up_again() -> None:
    whole = state(20)
    parts = list(in_parts(whole))
    assert len(parts) > 5
    assert max(part.ByteSize() for part in parts) <= PART_BYTES + len(CONTENT) + 1000
    assert [part.partial for part in parts] == [True] * (len(parts) - 1) + [False]
    assert {part.generation for part in parts} == {7}
    joined = pb.State()
    for part in parts:
        joined.MergeFrom(part)
    joined.partial = False
    assert joined == whole


def test_removals_come_first_and_a_part_of_a_snapshot_stays_one() -> None:
    whole = state(20)
    whole.full = whole.partial = True
    first, *others = in_parts(whole)
    assert first.full
    assert list(first.removed_pods) == ["gone"]
    assert all(part.partial and not part.full for part in others)


def test_a_short_state_is_sent_as_it_is() -> None:
    whole = state(1)
    assert [part is whole for part in in_parts(whole)] == [True]
