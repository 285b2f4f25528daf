"""Asks a real kube-scheduler for its scores and rejections; records what it says.

What `make test` compares our plugins with is recorded by: python -m tools.golden.oracle

The clusters that it asks about are those of the last recording, which has them beside the answers.
A new case is a new object there: a pod under `scored` with `"outcomes": {}`, or under `filtered`
with its plugin. The five clusters are small but mean: about resources (fractions, zeros, defaults,
overcommitment), what nodes are and have, who stands near whom, domains and who is the first in
them, and everything mixed.

Each pod is scheduled, bound and deleted again before the next comes, so that all see the same
cluster. kube-scheduler logs every plugin's normalised score at -v=10, if at least two nodes are
feasible. For the reasons of rejections each pod comes a second time with a request that no node can
meet: only a pod without any feasible node is said why.
"""

import asyncio
import copy
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from moorage_host.kube import KubeClient
from tools.build import kubernetes_version
from tools.golden.scheduler import SCORE_PROFILES, UNMET, Log, last_recording, recording, scheduler
from tools.inprocess.api import send
from tools.planes.embedded import Object, Plane
from tools.planes.real import real_plane

RECORDED = recording("golden-scores")

NAMESPACES = ("team-a", "team-b")
PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
}


def _controller(kind: str, name: str) -> Object:
    """Build what owns pods; nobody makes them."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "app:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


OTHERS = (
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in NAMESPACES),
    _controller("ReplicaSet", "web"),
    _controller("StatefulSet", "db"),
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "heavy"},
        "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "133m", "memory": "77Mi"}},
    },
)
"""What pods are in, belong to, and refer to."""

NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
FIXED_TIME = "2026-01-01T00:00:00Z"


async def ask(plane: Plane, client: KubeClient) -> Object:
    """Return everything that is recorded; *client* has all rights."""
    for obj in OTHERS:
        await _create(client, obj)
    asked = json.loads(last_recording(RECORDED).read_text())["clusters"]
    clusters = [await _record(plane, client, cluster) for cluster in asked]
    for obj in OTHERS:
        if obj["kind"] != "Namespace":  # without a controller manager it would not go
            await _delete(client, obj)
    return {"version": kubernetes_version(), "profiles": SCORE_PROFILES, "clusters": clusters}


async def record() -> None:
    """Write the file that `make test` reads."""
    async with real_plane() as (plane, client):
        RECORDED.write_text(_written(await ask(plane, client)))


async def _record(plane: Plane, client: KubeClient, cluster: Object) -> Object:
    asked_nodes, asked_pods = (list(map(_as_given, cluster[key])) for key in ("nodes", "bound"))
    nodes = [await _create(client, obj) for obj in asked_nodes]
    bound = [await _create(client, obj) for obj in asked_pods]
    for obj in asked_pods:
        if obj["metadata"].get("finalizers"):
            await _delete(client, obj)
    profiles = list(cluster["scored"][0]["outcomes"])
    async with scheduler(plane) as log:
        asker = _Asker(client, log)
        scored = [
            await asker.scores(profiles, _as_given(each["pod"])) for each in cluster["scored"]
        ]
        filtered = await asker.rejections(cluster["filtered"])
    for obj in (*asked_pods, *asked_nodes):
        await _remove(client, obj)
    return {
        "name": cluster["name"],
        "nodes": [_pruned(obj) for obj in nodes],
        "bound": [_pruned(obj) for obj in bound],
        "scored": scored,
        "filtered": filtered,
    }


class _Asker:
    """Lets pods be scheduled one after another."""

    def __init__(self, client: KubeClient, log: Log) -> None:
        self._client = client
        self._log = log

    async def scores(self, profiles: Sequence[str], obj: Object) -> Object:
        """Return where a pod may go by each profile, and the scores there by plugin and node."""
        answers = [await self._schedule(obj, profile) for profile in profiles]
        outcomes = {profile: answers[i][1] for i, profile in enumerate(profiles)}
        return {"pod": answers[0][0], "outcomes": outcomes}

    async def rejections(self, filtered: Sequence[Object]) -> list[Object]:
        """Return where pods may go by one filter plugin each, and why not elsewhere."""
        asked = [(each["plugin"], _as_given(each["pod"])) for each in filtered]
        found = []
        for plugin, obj in asked:
            pod, alone = await self._schedule(obj, plugin)
            answer = {"feasible": alone["feasible"], "alone": alone.get("message")}
            found.append({"plugin": plugin, "pod": pod, **answer})
        # These are never placed, so they may come all at once.
        unmet = [_unmet(obj, plugin) for plugin, obj in asked]
        for obj in unmet:
            await _create(self._client, obj)
        for each, obj in zip(found, unmet, strict=True):
            each["filled"] = _outcome(_key(obj), await self._end(obj), [])["message"]
        for obj in unmet:
            await self._delete(obj)
        return found

    async def _schedule(self, obj: Object, profile: str) -> tuple[Object, Object]:
        obj = _for_profile(obj, profile)
        created = await _create(self._client, obj)
        end = await self._end(obj)
        outcome = _outcome(_key(obj), end, self._log.lines)
        await self._delete(obj)
        self._log.forget()
        return _pruned(created), outcome

    async def _end(self, obj: Object) -> str:
        key = _key(obj)
        return await self._log.line(f'"Successfully bound pod to node" {key}|no fit.* {key}')

    async def _delete(self, obj: Object) -> None:
        await _delete(self._client, obj)
        await self._log.line(f'"Delete event for (un)?scheduled pod" {_key(obj)}')


def _key(obj: Object) -> str:
    return f'pod="{obj["metadata"]["namespace"]}/{obj["metadata"]["name"]}"'


def _for_profile(obj: Object, profile: str) -> Object:
    return {**obj, "spec": {**obj["spec"], "schedulerName": profile}}


def _unmet(obj: Object, profile: str) -> Object:
    """Return a pod that no node can take."""
    obj = copy.deepcopy(_for_profile(obj, profile))
    resources = obj["spec"]["containers"][0]["resources"]
    for side in ("requests", "limits"):
        resources[side] = {**resources.get(side, {}), UNMET: "1"}
    return obj


def _outcome(key: str, end: str, lines: Iterable[str]) -> Object:
    if message := re.search(r'err="(.*)"$', end):
        return {"feasible": [], "message": message[1].replace('\\"', '"')}
    pattern = re.compile(
        rf'"Plugin scored node for pod" {key} plugin="(.*)" node="(.*)" score=(.*)'
    )
    scores: dict[str, dict[str, int]] = {}
    for found in filter(None, map(pattern.search, lines)):
        scores.setdefault(found[1], {})[found[2]] = int(found[3])
    nodes = {node for by_node in scores.values() for node in by_node}
    bound = re.search(r' node="(.*?)"', end)
    feasible = sorted(nodes) or [bound[1] if bound else ""]
    ordered = {plugin: dict(sorted(by_node.items())) for plugin, by_node in sorted(scores.items())}
    return {"feasible": feasible, "scores": ordered}


async def _create(client: KubeClient, obj: Object) -> Object:
    return await send(client, "POST", _path(obj), obj)


async def _delete(client: KubeClient, obj: Object) -> None:
    await send(client, "DELETE", f"{_path(obj)}/{obj['metadata']['name']}", NOW)


async def _remove(client: KubeClient, obj: Object) -> None:
    if not obj["metadata"].get("finalizers"):
        await _delete(client, obj)
        return
    path = f"{_path(obj)}/{obj['metadata']['name']}"
    await send(client, "PATCH", path, {"metadata": {"finalizers": None}})


def _path(obj: Object) -> str:
    if obj["kind"] == "Pod":
        return f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods"
    return PATHS[obj["kind"]]


def _as_given(recorded: Object) -> Object:
    """Return an object that can be created again from what was recorded of it."""
    obj = copy.deepcopy(recorded)
    if "status" in obj:
        obj |= {"apiVersion": "v1", "kind": "Node"}
        obj["status"]["capacity"] = obj["status"]["allocatable"]
        return obj
    if obj["metadata"].pop("deletionTimestamp", None):
        obj["metadata"]["finalizers"] = ["example.com/stay"]
    _unmerge(obj["spec"])
    return obj | {"apiVersion": "v1", "kind": "Pod"}


def _unmerge(part: Any) -> None:
    """Take out of selectors what kube-apiserver puts there for matchLabelKeys."""
    if isinstance(part, list):
        for each in part:
            _unmerge(each)
    if not isinstance(part, dict):
        return
    merged = {*part.get("matchLabelKeys", ()), *part.get("mismatchLabelKeys", ())}
    selector = part.get("labelSelector") or {}
    expressions = selector.pop("matchExpressions", ())
    if kept := [each for each in expressions if each["key"] not in merged]:
        selector["matchExpressions"] = kept
    for each in part.values():
        _unmerge(each)


def _pruned(obj: Object) -> Object:
    """Return what of an object is the same each time."""
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    if obj["metadata"].get("finalizers"):
        metadata["deletionTimestamp"] = FIXED_TIME
    spec = {k: v for k, v in obj["spec"].items() if k != "schedulerName"}
    status = {
        key: value for key, value in obj["status"].items() if key in ("allocatable", "images")
    }
    return {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})


def _written(recording: Object) -> str:
    """Return a recording as text with a line for each object."""

    def listed(name: str, items: list[Any]) -> str:
        lines = ",\n".join(json.dumps(item, sort_keys=True) for item in items)
        return f"{json.dumps(name)}: [\n{lines}\n]"

    clusters = [
        "{"
        + ",\n".join(
            [f'"name": {json.dumps(cluster["name"])}']
            + [listed(key, value) for key, value in cluster.items() if key != "name"]
        )
        + "}"
        for cluster in recording["clusters"]
    ]
    head = f'"version": {json.dumps(recording["version"])},\n"profiles": '
    profiles = json.dumps(recording["profiles"], sort_keys=True)
    return "{" + head + profiles + ',\n"clusters": [\n' + ",\n".join(clusters) + "\n]}\n"


if __name__ == "__main__":
    asyncio.run(record())
