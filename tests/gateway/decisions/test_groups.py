"""The sentences about groups."""

import pytest

from gateway.cycle.decision import GroupRecord, ReasonNodes
from gateway.decisions.groups import group_evidence, group_sentence, group_steps

GPU = "example.com/gpu"


def record(**more: object) -> GroupRecord:
    known = {"plugin": "Gang", "name": "ml/train", "members": 16, "min_count": 16, **more}
    return GroupRecord(**known)  # type: ignore[arg-type]


LACKING = record(
    fitting=12,
    topology_key="example.com/rack",
    domain="r1",
    failing="ml/train-12",
    reasons=[
        ReasonNodes(reason=f"Insufficient {GPU}", nodes=5, examples=["n1", "n2", "n3"]),
        ReasonNodes(reason="node is too hot", nodes=1, examples=["n9"]),
    ],
    lacking=GPU,
    lacking_free=2,
    lacking_domain="r7",
    like="n1",
    more_nodes=1,
)


@pytest.mark.parametrize(
    ("group", "sentence", "step"),
    [
        (
            LACKING,
            (
                "group ml/train does not fit: 12 of 16 placed in rack r1; 4 need example.com/gpu, "
                "which is free on 2 nodes of rack r7 only"
            ),
            "with 1 more node like n1 in rack r1 it starts, or with as much example.com/gpu freed",
        ),
        (
            record(members=15, problem="pods of the group are missing"),
            "group ml/train has 15 of 16 pods",
            "1 more pod of the group must be created",
        ),
        (
            record(fitting=16, fits=True),
            "group ml/train fits: 16 of 16 have a node",
            "",
        ),
        (
            record(fitting=15, failing="ml/train-3", reasons=LACKING.reasons[1:]),
            "group ml/train does not fit: 15 of 16 placed; 1 found no node: node is too hot",
            "",
        ),
        (
            record(ahead="ml/first"),
            "group ml/train waits for group ml/first, which is ahead of it and fits",
            "group ml/first is placed first, or is passed over once it is not tried",
        ),
    ],
)
def test_one_sentence_has_the_state_of_a_group(
    group: GroupRecord, sentence: str, step: str
) -> None:
    assert group_sentence(group) == sentence
    assert "".join(group_steps(group)) == step


def test_the_evidence_names_nodes_by_reason() -> None:
    assert list(group_evidence(LACKING)) == [
        (
            "nodes for ml/train-12: 5 Insufficient example.com/gpu (n1, n2, n3, ...), "
            "1 node is too hot (n9)"
        )
    ]
