import json
import random
from typing import Any

import pytest

from sandbox.scheduler.extenders.gojson import dumps, node_json, pod_json
from tests.sandbox.scheduler.support import recordings


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if isinstance(value, dict):
        keys = rng.sample(sorted(value), len(value))
        return {key: shuffled(value[key], rng) for key in keys}
    return value


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_pods_and_nodes_are_written_as_kube_scheduler_wrote_them(mode: str) -> None:
    rng = random.Random(1)
    for _, _, body in recordings(mode):
        given = json.loads(body)
        if "Pod" in given:
            assert pod_json(shuffled(given["Pod"], rng)).decode() in body
        for node in (given.get("Nodes") or {"items": []})["items"]:
            assert node_json(shuffled(node, rng)).decode() in body


def test_what_go_leaves_out_is_left_out() -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "labels": None},
        "spec": {"containers": [{"name": "c", "image": "", "ports": []}]},
    }
    assert pod_json(pod) == (
        b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}'
    )


def test_empty_values_of_labels_stay() -> None:
    node = {"metadata": {"name": "n", "labels": {"b": "", "a": "1"}}}
    assert b'"labels":{"a":"1","b":""}' in node_json(node)


def test_fields_of_newer_kubernetes_versions_are_kept() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [], "novelty": {"b": 1, "a": 2}}}
    assert b'"novelty":{"a":2,"b":1}' in pod_json(pod)


def test_html_and_line_separators_are_escaped() -> None:
    assert dumps("<a&b>\u2028\u2029é\n") == rb'"\u003ca\u0026b\u003e\u2028\u2029' + 'é\\n"'.encode()
