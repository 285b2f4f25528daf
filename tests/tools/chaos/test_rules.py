"""The oracle finds what must not happen."""

import pytest

from tools.chaos.load import RUN, Wanted
from tools.chaos.oracle import Act, Verdict, Write, judge
from tools.chaos.plugins.rules.rules import EXCLUSIVE, LIMITED


def pods(pool: str, *labels: dict[str, str]) -> list[Wanted]:
    return [
        Wanted(name=f"p{i}", kind=pool, at=0, pool=pool, labels=each)
        for i, each in enumerate(labels)
    ]


def judged(wanted: list[Wanted], *acts: str) -> Verdict:
    """Each act is "bind p0 node", "delete p0" or "create p0"; all pods are created first."""
    created = [f"create {name}" for name in dict.fromkeys(each.name for each in wanted)]
    return judge([write(i, act) for i, act in enumerate([*created, *acts])], wanted)


def write(at: int, text: str) -> Write:
    verb, name, node, code, *_ = (*text.split(), "", "", "")
    acts: dict[str, Act] = {"bind": "bind", "create": "create", "delete": "delete"}
    return Write(
        act=acts[verb],
        name=name,
        node=node,
        code=int(code or 201),
        injected=code == "429",
        client="",
        at=float(at),
    )


@pytest.mark.parametrize(
    ("wanted", "acts", "broken"),
    [
        (pods("plain", {}), ["bind p0 runs-1"], "pool plain"),
        (pods("runs", {RUN: "a"}, {RUN: "a"}), ["bind p0 runs-1", "bind p1 runs-2"], "run a is on"),
        (pods("runs", {RUN: "a"}, {RUN: "b"}), ["bind p0 runs-1", "bind p1 runs-1"], "has run a"),
        (
            pods("exclusive", *[{EXCLUSIVE: ""}] * 2),
            ["bind p0 exclusive-1", "bind p1 exclusive-1"],
            "exclusive pod",
        ),
        (
            pods("limited", *[{LIMITED: ""}] * 2),
            [f"bind p{i} limited-1" for i in range(2)],
            "1 limited pods",
        ),
    ],
)
def test_a_broken_rule_is_named(wanted: list[Wanted], acts: list[str], broken: str) -> None:
    (sentence,) = judged(wanted, *acts).broken
    assert broken in sentence
    assert judged(wanted, *acts[:-1]).broken == []


def test_a_pod_that_is_deleted_makes_place() -> None:
    wanted = pods("exclusive", *[{EXCLUSIVE: ""}] * 2)
    verdict = judged(wanted, "bind p0 exclusive-1", "delete p0", "bind p1 exclusive-1")
    assert verdict.broken == []


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    old, new = pods("a", {}), pods("b", {})
    verdict = judged(old + new, "delete p0", "create p0", "bind p0 a-1")
    assert "it belongs into the pool b" in verdict.broken[0]


def test_only_second_binds_that_succeed_count_as_twice() -> None:
    wanted = pods("plain", {})
    assert judged(wanted, "bind p0 plain-1", "bind p0 plain-1 409").twice == 0
    assert judged(wanted, "bind p0 plain-1", "bind p0 plain-1").twice == 1


def test_posts_that_a_fault_refused_do_not_count() -> None:
    verdict = judged(pods("plain", {}), "bind p0 plain-1 429", "bind p0 plain-1")
    assert verdict.posts_per_bind == 1


def test_the_pause_is_the_longest_time_in_which_a_pod_waited_in_vain() -> None:
    wanted = pods("plain", {}, {}, {})
    verdict = judged(wanted, "bind p0 plain-1", "delete p1", "bind p2 plain-1")
    assert verdict.pause == 3  # from the first creation to the first bind


def test_a_pod_whose_create_failed_and_was_done_counts_once_it_is_deleted() -> None:
    old, new = pods("a", {}), pods("b", {})
    acts = ("create p0 - 500", "delete p0", "create p0", "bind p0 b-1")
    verdict = judge([write(at, act) for at, act in enumerate(acts)], old + new)
    assert verdict.broken == []
    assert verdict.bound == 1
