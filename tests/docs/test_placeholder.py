"""The parts of the how-to about placeholders fit together; tests/e2e runs them for real."""

import re

import msgspec
import yaml

from moorage import Pod
from moorage.models.decoding import decode_pod
from moorage.testing import make_node, run_filter
from services.filter.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from tests.e2e.placement.placeholder import ISOLATED, TEXT, Object, placeholder, task
from tools.docs.pages import ROOT

NODES = tuple(make_node(name) for name in ("n1", "n2", "n3"))


def model(obj: Object, node: str = "") -> Pod:
    metadata = {**obj["metadata"], "namespace": "default", "uid": obj["metadata"]["name"]}
    spec = {**obj["spec"], "nodeName": node}
    return decode_pod(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def feasible(obj: Object, *others: Pod) -> set[str]:
    verdicts = run_filter(InterPodAffinity(), model(obj), *NODES, pods=others)
    return {name for name, rejection in verdicts.items() if rejection is None}


def test_a_pod_of_the_run_goes_only_where_its_placeholder_is() -> None:
    assert feasible(task("build-1", "compile")) == set()
    others = model(placeholder("build-1"), "n2"), model(placeholder("build-2"), "n3")
    assert feasible(task("build-1", "compile"), *others) == {"n2"}


def test_runs_may_share_a_node_unless_they_are_isolated() -> None:
    shared = model(placeholder("build-1"), "n2")
    assert feasible(placeholder("build-2"), shared) == {"n1", "n2", "n3"}
    alone = model(placeholder("build-1", affinity=ISOLATED), "n2")
    assert feasible(placeholder("build-2", affinity=ISOLATED), alone) == {"n1", "n3"}


def test_the_commands_name_the_files_and_what_is_in_them() -> None:
    files = set(re.findall(r"-f (\S+)", TEXT))
    kinds = {yaml.safe_load((ROOT / file).read_text())["kind"] for file in files}
    assert kinds == {"StatefulSet", "Pod"}
    assert f"kubectl describe pod {task('build-1', 'compile')['metadata']['name']}`" in TEXT
    label = dict([re.findall(r"kubectl get pods -l (\S+)=(\S+)", TEXT)[0]])
    for obj in (task("build-1", "compile"), placeholder("build-1")):
        assert label.items() <= obj["metadata"]["labels"].items()
