"""What real kube-schedulers decided about small but difficult clusters, as models of ours.

tools/golden records it, a file for each minor version of Kubernetes; the tests of the filter
and scorer services repeat it.
"""

import functools
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moorage import DEVICE_CLASSES, Nodes, Pod
from moorage.models.decoding import decode_node, decode_pod
from moorage.testing import make_nodes
from moorage.testing.given import GivenObjects

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(file.stem.rpartition("-")[2] for file in DATA.glob("golden-scores-*.json"))
"""The minor versions of Kubernetes that are recorded."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A pod that was scored.

    Attributes:
        version: The minor version of kube-scheduler.
        cluster: The cluster's name.
        profile: The profile's name.
        arguments: Those of the profile's plugins.
        pod: The pod.
        feasible: The nodes that passed all filters.
        scores: By plugin and node; only of plugins that had an opinion, and none unless two nodes
            are feasible.
        message: What was said of the pod if there is none.
    """

    version: str
    cluster: str
    profile: str
    arguments: Mapping[str, Object]
    pod: Pod
    feasible: list[str]
    scores: Mapping[str, Mapping[str, int]]
    message: str | None

    def __str__(self) -> str:
        return f"{self.version}-{self.cluster}-{self.profile}-{self.pod.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """A pod that was filtered by one plugin, and NodeResourcesFit after it.

    Attributes:
        version: The minor version of kube-scheduler.
        cluster: The cluster's name.
        plugin: The plugin's name.
        pod: The pod.
        feasible: The nodes that passed.
        alone: What was said of the pod if there is none.
        filled: What was said of the same pod with a request that no node can meet.
    """

    version: str
    cluster: str
    plugin: str
    pod: Pod
    feasible: list[str]
    alone: str | None
    filled: str

    def __str__(self) -> str:
        return f"{self.version}-{self.plugin}-{self.pod.name}"


@dataclass(frozen=True, slots=True)
class Refused:
    """What a message of kube-scheduler says.

    Attributes:
        reasons: How many nodes were rejected for each reason; a node may have several.
        hopeless: On how many nodes preemption would not help.
    """

    reasons: Counter[str]
    hopeless: int


def scored(*versions: str) -> Iterator[Scored]:
    """Yield each pod with each profile, for each version."""
    for version in versions or VERSIONS:
        recording = recorded(version)
        for cluster in recording["clusters"]:
            for each in cluster["scored"]:
                for profile, outcome in each["outcomes"].items():
                    yield Scored(
                        version=version,
                        cluster=cluster["name"],
                        profile=profile,
                        arguments=recording["profiles"][profile],
                        pod=_pod(each["pod"]),
                        feasible=outcome["feasible"],
                        scores=outcome.get("scores", {}),
                        message=outcome.get("message"),
                    )


def filtered(*versions: str) -> Iterator[Filtered]:
    """Yield each pod with the plugin that it is about, for each version."""
    for version in versions or VERSIONS:
        for cluster in recorded(version)["clusters"]:
            for each in cluster["filtered"]:
                yield Filtered(
                    version=version,
                    cluster=cluster["name"],
                    plugin=each["plugin"],
                    pod=_pod(each["pod"]),
                    feasible=each["feasible"],
                    alone=each["alone"],
                    filled=each["filled"],
                )


@functools.cache
def cluster(version: str, name: str) -> Nodes:
    """Return a cluster's nodes with the pods on them, as a version of Kubernetes had them."""
    (found,) = (each for each in recorded(version)["clusters"] if each["name"] == name)
    nodes = [decode_node(_encoded(obj)) for obj in found["nodes"]]
    none: GivenObjects = {DEVICE_CLASSES: ()}
    return make_nodes(*nodes, pods=map(_pod, found["bound"]), objects=none)


def objects(version: str, name: str) -> tuple[list[Object], list[Object]]:
    """Return a cluster's nodes, and the pods on them, as the API server has them."""
    (found,) = (each for each in recorded(version)["clusters"] if each["name"] == name)
    return found["nodes"], [msgspec.json.decode(_encoded(obj)) for obj in found["bound"]]


@functools.cache
def recorded(version: str) -> Object:
    """Return a recording as it was written."""
    recording: Object = json.loads((DATA / f"golden-scores-{version}.json").read_text())
    return recording


def parse(message: str) -> Refused:
    """Read a message such as "0/3 nodes are available: 3 Insufficient cpu. preemption: ..."."""
    reasons, _, preemption = message.partition(" preemption: ")
    return Refused(
        _counts(reasons), _counts(preemption)["Preemption is not helpful for scheduling"]
    )


def _counts(text: str) -> Counter[str]:
    listed = text.partition("available: ")[2].removesuffix(".")
    pairs = (re.fullmatch(r"(\d+) (.*)", part) for part in listed.split(", "))
    return Counter({found[2]: int(found[1]) for found in pairs if found})


def _pod(obj: Object) -> Pod:
    return decode_pod(_encoded(obj))


def _encoded(obj: Object) -> bytes:
    """Write an object with the uid that is not recorded, as each time it is another."""
    metadata = obj["metadata"]
    uid = uuid.uuid5(uuid.NAMESPACE_DNS, f"{metadata.get('namespace')}/{metadata['name']}")
    return msgspec.json.encode({**obj, "metadata": {**metadata, "uid": str(uid)}})
