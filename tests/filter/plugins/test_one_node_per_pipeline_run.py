from collections.abc import Iterable

import pytest

from moorage import Pod, Rejection
from moorage.testing import make_node, make_pod, run_filter
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun

LABEL = "tekton.dev/pipelineRun"
NODES = tuple(make_node(name) for name in ("n1", "n2", "n3"))
ELSEWHERE = Rejection("node(s) didn't run the other pods of the PipelineRun", unresolvable=True)
OCCUPIED = Rejection("node(s) already ran another PipelineRun", unresolvable=False)


def task(name: str, run: str, node: str = "", namespace: str = "default") -> Pod:
    return make_pod(name, labels={LABEL: run}, node=node, namespace=namespace)


def verdicts(
    pod: Pod, pods: Iterable[Pod] = (), plugin: OneNodePerPipelineRun | None = None
) -> dict[str, Rejection | None]:
    return run_filter(plugin or OneNodePerPipelineRun(), pod, *NODES, pods=pods)


def colocating(**args: str | bool) -> OneNodePerPipelineRun:
    return OneNodePerPipelineRun(OneNodePerPipelineRun.Args(**args))  # type: ignore[arg-type]


def isolating() -> OneNodePerPipelineRun:
    return colocating(isolation_strategy="colocateCompleted")


def test_the_first_pod_of_a_run_may_go_anywhere_and_claims_its_node() -> None:
    others = [task("other", "b", "n1"), make_pod("plain", node="n2")]
    assert verdicts(task("a-1", "a"), others) == {"n1": None, "n2": None, "n3": None}
    assert OneNodePerPipelineRun().reserve(task("a-1", "a"))


def test_the_others_follow_it() -> None:
    found = verdicts(task("a-2", "a"), [task("a-1", "a", "n2"), task("b-1", "b", "n1")])
    assert found == {"n1": ELSEWHERE, "n2": None, "n3": ELSEWHERE}


def test_they_follow_it_even_to_a_node_that_does_not_come_into_question() -> None:
    gone = [task("a-1", "a", "n9")]
    found = run_filter(
        OneNodePerPipelineRun(), task("a-2", "a"), *NODES, make_node("n9"), pods=gone
    )
    assert [name for name, rejection in found.items() if rejection is None] == ["n9"]


def test_a_run_on_several_nodes_may_go_on_on_each_of_them() -> None:
    found = verdicts(task("a-3", "a"), [task("a-1", "a", "n1"), task("a-2", "a", "n3")])
    assert found == {"n1": None, "n2": ELSEWHERE, "n3": None}


@pytest.mark.parametrize("plugin", [colocating(), isolating()])
def test_pods_of_no_run_go_anywhere(plugin: OneNodePerPipelineRun) -> None:
    found = verdicts(make_pod("plain"), [task("a-1", "a", "n1")], plugin)
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("others", "shared", "isolated"),
    [
        pytest.param((), None, None, id="nothing"),
        pytest.param((make_pod("plain", node="n1"),), None, None, id="pods of no run"),
        pytest.param((task("b-1", "b", "n1"),), None, OCCUPIED, id="another run"),
        pytest.param(
            (task("b-1", "b", "n1"), task("c-1", "c", "n1")), None, OCCUPIED, id="two other runs"
        ),
        pytest.param((task("a-1", "a", "n1"),), None, None, id="its own run"),
        pytest.param((task("a-1", "a", "n1"), task("b-1", "b", "n1")), None, OCCUPIED, id="both"),
    ],
)
def test_what_is_on_a_node_decides(
    others: tuple[Pod, ...], shared: Rejection | None, isolated: Rejection | None
) -> None:
    assert verdicts(task("a-9", "a"), others, colocating())["n1"] == shared
    assert verdicts(task("a-9", "a"), others, isolating())["n1"] == isolated


def test_runs_of_the_same_name_in_two_namespaces_are_two_runs() -> None:
    theirs = [task("a-1", "a", "n1", namespace="theirs")]
    assert verdicts(task("a-1", "a"), theirs) == {"n1": None, "n2": None, "n3": None}
    assert verdicts(task("a-1", "a"), theirs, isolating())["n1"] == OCCUPIED
    conflated = verdicts(task("a-1", "a"), theirs, colocating(namespaced=False))
    assert conflated == {"n1": None, "n2": ELSEWHERE, "n3": ELSEWHERE}


def test_the_label_may_be_another() -> None:
    plugin = colocating(label_key="example.com/job")
    there = make_pod("j-1", labels={"example.com/job": "j"}, node="n3")
    found = verdicts(make_pod("j-2", labels={"example.com/job": "j"}), [there], plugin)
    assert found == {"n1": ELSEWHERE, "n2": ELSEWHERE, "n3": None}
    assert set(verdicts(task("a-1", "a"), [there], plugin).values()) == {None}
