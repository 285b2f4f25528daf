import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from moorage import ENDED_PODS, Pod, Rejection
from moorage.models import encode
from moorage.testing import make_node, make_nodes, make_pod, run_filter
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun

LABEL = "tekton.dev/pipelineRun"
NAMES = ("n1", "n2", "n3")
NODES = tuple(map(make_node, NAMES))
ELSEWHERE = Rejection("node(s) didn't run the other pods of the PipelineRun", unresolvable=True)
OCCUPIED = Rejection(
    "node(s) already ran another PipelineRun", unresolvable=False, cured_by="capacity"
)


def task(name: str, run: str, node: str = "", namespace: str = "default") -> Pod:
    return make_pod(name, labels={LABEL: run}, node=node, namespace=namespace)


def succeeded(pod: Pod) -> dict[str, Any]:
    """Return the manifest of *pod* once it has ended, as ENDED_PODS selects it."""
    manifest: dict[str, Any] = json.loads(encode(pod))
    return manifest | {"status": {"phase": "Succeeded"}}


def verdicts(
    pod: Pod,
    pods: Iterable[Pod] = (),
    plugin: OneNodePerPipelineRun | None = None,
    ended: Iterable[Pod] = (),
) -> dict[str, Rejection | None]:
    objects = {ENDED_PODS: [succeeded(pod) for pod in ended]}
    return run_filter(plugin or OneNodePerPipelineRun(), pod, *NODES, pods=pods, objects=objects)


def colocating(**args: str | bool) -> OneNodePerPipelineRun:
    return OneNodePerPipelineRun(OneNodePerPipelineRun.Args(**args))  # type: ignore[arg-type]


def isolating(strategy: str = "colocateCompleted") -> OneNodePerPipelineRun:
    return colocating(isolation_strategy=strategy)


@pytest.mark.parametrize(
    ("there", "passing"),
    [
        pytest.param([task("other", "b", "n1"), make_pod("plain", node="n2")], NAMES, id="first"),
        pytest.param([task("a-1", "a", "n2"), task("b-1", "b", "n1")], {"n2"}, id="others follow"),
        pytest.param([task("a-1", "a", "n1"), task("a-2", "a", "n3")], {"n1", "n3"}, id="on two"),
    ],
)
def test_pods_of_a_run_go_where_others_of_it_run(there: list[Pod], passing: set[str]) -> None:
    found = verdicts(task("a-9", "a"), there)
    assert found == {name: None if name in passing else ELSEWHERE for name in NAMES}
    assert OneNodePerPipelineRun().wants_claim(task("a-9", "a"))
    for plugin in (colocating(), isolating()):
        assert set(verdicts(make_pod("of no run"), there, plugin).values()) == {None}


A, B, C = (task(f"{run}-1", run, "n1") for run in "abc")
PLAIN = make_pod("plain", node="n1")


@pytest.mark.parametrize(
    ("running", "ended", "completed", "always"),
    [
        pytest.param((), (), None, None, id="nothing"),
        pytest.param((PLAIN,), (), None, None, id="pods of no run"),
        pytest.param((), (PLAIN,), None, None, id="ended pods of no run"),
        pytest.param((A,), (), None, None, id="its own run"),
        pytest.param((), (A,), None, None, id="its own run, ended"),
        pytest.param((B,), (), OCCUPIED, OCCUPIED, id="another run"),
        pytest.param((), (B,), None, OCCUPIED, id="another run, ended"),
        pytest.param((B, C), (), OCCUPIED, OCCUPIED, id="two others"),
        pytest.param((), (B, C), None, OCCUPIED, id="two others, ended"),
        pytest.param((C,), (B,), OCCUPIED, OCCUPIED, id="one other and one ended"),
        pytest.param((A, B), (), OCCUPIED, OCCUPIED, id="its own run and another"),
        pytest.param((A,), (B,), None, OCCUPIED, id="its own run and another, ended"),
    ],
)
def test_what_is_on_a_node_decides(
    running: tuple[Pod, ...],
    ended: tuple[Pod, ...],
    completed: Rejection | None,
    always: Rejection | None,
) -> None:
    def on_n1(plugin: OneNodePerPipelineRun) -> Rejection | None:
        return verdicts(task("a-9", "a"), running, plugin, ended)["n1"]

    assert on_n1(colocating()) is None
    assert on_n1(isolating("colocateCompleted")) == completed
    assert on_n1(isolating("isolateAlways")) == always


def test_a_run_whose_pods_have_all_ended_may_move_unless_they_are_kept() -> None:
    ended = [task("a-1", "a", "n2"), task("b-1", "b", "n1")]
    anywhere = verdicts(task("a-2", "a"), ended=ended)
    assert anywhere == {"n1": None, "n2": None, "n3": None}
    pinned = verdicts(task("a-2", "a"), ended=ended, plugin=colocating(include_completed=True))
    assert pinned == {"n1": ELSEWHERE, "n2": None, "n3": ELSEWHERE}


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_pod_pins_its_run_to_a_node_that_does_not_come_into_question(is_ended: bool) -> None:
    there = task("a-1", "a", "n2")
    objects = {ENDED_PODS: [succeeded(there)] if is_ended else []}
    cluster = make_nodes(*NODES, pods=() if is_ended else [there], objects=objects)
    others = cluster.where(np.array([name != "n2" for name in cluster.names]))
    found = colocating(include_completed=True).filter(task("a-2", "a"), others)
    assert found.reasons == [ELSEWHERE]
    assert not found.passed.any()


def test_runs_of_the_same_name_in_two_namespaces_are_two_runs() -> None:
    theirs = [task("a-1", "a", "n1", namespace="theirs")]
    assert verdicts(task("a-1", "a"), theirs) == {"n1": None, "n2": None, "n3": None}
    assert verdicts(task("a-1", "a"), theirs, isolating())["n1"] == OCCUPIED
    kept = isolating("isolateAlways")
    assert verdicts(task("a-1", "a"), (), kept, ended=theirs)["n1"] == OCCUPIED
    conflated = verdicts(task("a-1", "a"), theirs, colocating(namespaced=False))
    assert conflated == {"n1": None, "n2": ELSEWHERE, "n3": ELSEWHERE}


def test_the_label_may_be_another() -> None:
    plugin = colocating(label_key="example.com/job")
    there = make_pod("j-1", labels={"example.com/job": "j"}, node="n3")
    found = verdicts(make_pod("j-2", labels={"example.com/job": "j"}), [there], plugin)
    assert found == {"n1": ELSEWHERE, "n2": ELSEWHERE, "n3": None}
    assert set(verdicts(task("a-1", "a"), [there], plugin).values()) == {None}
