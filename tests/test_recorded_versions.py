"""What differs between the recorded versions of kube-scheduler: this and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

from tests.golden import DATA, recorded
from tools.recordings import recorded_requests

EARLIER, LATER = "1.36", "1.37"

IDENTITY = {"uid", "UID", "PodUID", "resourceVersion", "creationTimestamp", "lastTransitionTime"}
BY_KUBECTL = {"managedFields", "kubectl.kubernetes.io/last-applied-configuration"}
BY_CHANCE = {"nominatedNodeName", "Node", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims"}
"""Fields that differ from run to run of the same version."""


def test_image_volumes_raise_the_upper_threshold_of_image_locality() -> None:
    """And kube-apiserver writes the sum of the containers' requests into those of the pod."""
    assert dict(_differences(recorded(EARLIER), recorded(LATER))) == {
        ".version": ("v1.36.3", "v1.37.2"),
        ".clusters.resources.scored.p-whole-with-more.pod.spec.resources.requests.memory": (
            None,
            "9Mi",
        ),
        **{
            f".clusters.nodes.scored.p-images.outcomes.default.scores.ImageLocality.{node}": scores
            for node, scores in {"ssd": (4, 3), "worse": (58, 49), "spare": (62, 51)}.items()
        },
    }


def test_node_name_comes_before_node_unschedulable() -> None:
    """Else sets of plugins are merged alike."""
    earlier, later = (
        json.loads((DATA / f"policy-merge-{version}.json").read_text())["cases"]
        for version in (EARLIER, LATER)
    )
    swapped = {"NodeName", "NodeUnschedulable"}

    def without_swapped(value: Any) -> Any:
        """Drop entries such as ["NodeName", 0] wherever plugins are listed."""
        if isinstance(value, dict):
            return {key: without_swapped(item) for key, item in value.items()}
        return [item for item in value if item[0] not in swapped]

    for before, after in zip(earlier, later, strict=True):
        assert (before.pop("case"), before.pop("plugins")) == (
            after.pop("case"),
            after.pop("plugins"),
        )
        assert without_swapped(before) == without_swapped(after)
    for cases, order in ((earlier, (2, 3)), (later, (3, 2))):
        names = [name for name, _ in cases[0]["multiPoint"]]
        assert (names.index("NodeUnschedulable"), names.index("NodeName")) == order


def test_a_nominated_pod_s_condition_names_the_preemption() -> None:
    """Else extenders get the same fields, in the same order, from both."""
    for mode in ("names", "nodes"):
        earlier, later = _traffic(EARLIER, mode), _traffic(LATER, mode)
        differing = {key for key in earlier.keys() | later.keys() if earlier[key] != later[key]}
        assert differing == {("filter", "preemptor")}
        before, after = (_condition(each["filter", "preemptor"]) for each in (earlier, later))
        name, _, message = after.partition(" preemption: found a potential placement for pod on ")
        assert name == before
        assert message.endswith(", preempting 1 victims")


def _traffic(version: str, mode: str) -> dict[tuple[str, str], str]:
    """Return what an extender was sent about each pod, without what differs from run to run."""
    found: dict[tuple[str, str], str] = {}
    for request in recorded_requests(f"{version}-{mode}"):
        body = json.loads(request.body)
        name = body["PodName"] if request.verb == "bind" else body["Pod"]["metadata"]["name"]
        body.pop("Nodes", None)
        headers = [header for header in request.headers if header != "Content-Length"]
        found[request.verb, name] = json.dumps([headers, _without_chance(body)])
    return found


def _without_chance(value: Any) -> Any:
    if isinstance(value, dict):
        dropped = IDENTITY | BY_KUBECTL | BY_CHANCE
        return {k: None if k in dropped else _without_chance(v) for k, v in value.items()}
    return [_without_chance(item) for item in value] if isinstance(value, list) else value


def _condition(text: str) -> str:
    _, body = json.loads(text)
    message: str = body["Pod"]["status"]["conditions"][0]["message"]
    return message


def _differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield where two values differ, with both of them."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = _by_name(one), _by_name(other)
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}")
    elif one != other:
        yield path, (one, other)


def _by_name(items: list[Any]) -> dict[str, Any]:
    """Return items by the name of the object, and by their places if they have none."""

    def name(place: int, item: Any) -> str:
        if not isinstance(item, dict):
            return str(place)
        metadata = item.get("metadata") or item.get("pod", {}).get("metadata") or {}
        return str(item.get("name") or metadata.get("name") or place)

    named = {name(place, item): item for place, item in enumerate(items)}
    return named if len(named) == len(items) else {str(p): item for p, item in enumerate(items)}
