"""Asks a real kube-scheduler for its scores and rejections; records what it says.

What `make test` compares our plugins with is recorded by: python -m tests.e2e.golden_oracle

Each pod is scheduled, bound and deleted again before the next comes, so that all see the same
cluster. kube-scheduler logs every plugin's normalised score at -v=10, if at least two nodes are
feasible. For the reasons of rejections each pod comes a second time with a request that no node can
meet: only a pod without any feasible node is said why.
"""

import asyncio
import copy
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from moorage.kube import KubeClient, connect
from tests.e2e.build import kubernetes_version
from tests.e2e.golden_clusters_nodes import NODE_PROPERTIES
from tests.e2e.golden_clusters_random import RANDOM
from tests.e2e.golden_clusters_resources import RESOURCES
from tests.e2e.golden_clusters_topology import TOPOLOGY
from tests.e2e.golden_objects import Cluster
from tests.e2e.golden_profiles import SCORE_PROFILES, UNMET, configuration
from tests.e2e.plane import RealPlane
from tests.scenarios.planes import ROOT, Object, Plane

RECORDED = ROOT / "tests" / "data" / "golden-scores-1.36.json"
# In this order: the last one's pods are in the namespaces of the one before.
CLUSTERS = (RESOURCES, NODE_PROPERTIES, TOPOLOGY, RANDOM)
PATIENCE = 20.0
VERBOSITY = ("--v=3", "--vmodule=schedule_one=10")  # without the bodies of all requests

PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
}
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
FIXED_TIME = "2026-01-01T00:00:00Z"


async def ask(plane: Plane, client: KubeClient) -> Object:
    """Return everything that is recorded; *client* has all rights."""
    clusters = [await _record(plane, client, cluster) for cluster in CLUSTERS]
    return {"version": kubernetes_version(), "profiles": SCORE_PROFILES, "clusters": clusters}


async def record() -> None:
    """Write the file that `make test` reads."""
    with tempfile.TemporaryDirectory() as name:
        plane = RealPlane(Path(name))
        try:
            await plane.start()
            client = await connect(plane.kubeconfig("admin"))
            try:
                RECORDED.write_text(_written(await ask(plane, client)))
            finally:
                await client.close()
        finally:
            await plane.stop()


async def _record(plane: Plane, client: KubeClient, cluster: Cluster) -> Object:
    for obj in cluster.others:
        await _create(client, obj)
    nodes = [await _create(client, obj) for obj in cluster.nodes]
    bound = [await _create(client, obj) for obj in cluster.bound]
    for obj in cluster.bound:
        if obj["metadata"].get("finalizers"):
            await _delete(client, obj)
    async with _scheduler(plane) as log:
        asker = _Asker(client, log)
        scored = [await asker.scores(cluster.profiles, obj) for obj in cluster.scored]
        filtered = [
            await asker.rejections(plugin, obj)
            for plugin, pods in cluster.filtered.items()
            for obj in pods
        ]
    for obj in (*cluster.bound, *cluster.nodes):
        await _remove(client, obj)
    return {
        "name": cluster.name,
        "nodes": [_pruned(obj) for obj in nodes],
        "bound": [_pruned(obj) for obj in bound],
        "scored": scored,
        "filtered": filtered,
    }


@asynccontextmanager
async def _scheduler(plane: Plane) -> AsyncIterator["_Log"]:
    """Run a new kube-scheduler: it knows all that exists before it schedules."""
    program = plane.scheduler("golden", configuration())
    gates = "--feature-gates=OpportunisticBatching=false"  # it would reuse scores of similar pods
    program.command = [*(c for c in program.command if not c.startswith("--v=")), *VERBOSITY, gates]
    program.log.write_bytes(b"")
    try:
        await program.start()
        yield _Log(program.log)
    finally:
        await program.stop()


class _Log:
    """Follows what kube-scheduler writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._rest = ""
        self._lines: list[str] = []

    async def line(self, *patterns: str) -> str:
        """Wait for a line that matches one of the patterns."""
        wanted = re.compile("|".join(patterns))
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for line in self._more():
                        if wanted.search(line):
                            return line
                    await asyncio.sleep(0.002)
        except TimeoutError as error:
            raise RuntimeError(f"no {patterns} in:\n" + "\n".join(self._lines[-60:])) from error

    def seen(self) -> list[str]:
        """Return all lines that were read since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def _more(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *lines, self._rest = (self._rest + new.decode(errors="replace")).split("\n")
        for line in lines:
            self._lines.append(line)
        return iter(lines)


class _Asker:
    """Lets pods be scheduled one after another."""

    def __init__(self, client: KubeClient, log: _Log) -> None:
        self._client = client
        self._log = log

    async def scores(self, profiles: Sequence[str], obj: Object) -> Object:
        """Return where a pod may go by each profile, and the scores there by plugin and node."""
        answers = [await self._schedule(obj, profile) for profile in profiles]
        outcomes = {profile: answers[i][1] for i, profile in enumerate(profiles)}
        return {"pod": answers[0][0], "outcomes": outcomes}

    async def rejections(self, plugin: str, obj: Object) -> Object:
        """Return where a pod may go by one filter plugin, and why not elsewhere."""
        pod, alone = await self._schedule(obj, plugin)
        unmet = copy.deepcopy(obj)
        resources = unmet["spec"]["containers"][0]["resources"]
        for side in ("requests", "limits"):
            resources[side] = {**resources.get(side, {}), UNMET: "1"}
        _, filled = await self._schedule(unmet, plugin)
        messages = {"alone": alone.get("message"), "filled": filled["message"]}
        return {"plugin": plugin, "pod": pod, "feasible": alone["feasible"], **messages}

    async def _schedule(self, obj: Object, profile: str) -> tuple[Object, Object]:
        obj = {**obj, "spec": {**obj["spec"], "schedulerName": profile}}
        created = await _create(self._client, obj)
        key = f'pod="{obj["metadata"]["namespace"]}/{obj["metadata"]["name"]}"'
        end = await self._log.line(f'"Successfully bound pod to node" {key}', f"no fit.* {key}")
        outcome = _outcome(key, end, self._log.seen())
        await _delete(self._client, obj)
        await self._log.line(f'"Delete event for (un)?scheduled pod" {key}')
        self._log.seen()
        return _pruned(created), outcome


def _outcome(key: str, end: str, lines: list[str]) -> Object:
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
    answer = await client.request("POST", _path(obj), body=msgspec.json.encode(obj), timeout=30)
    created: Object = msgspec.json.decode(answer.check().body)
    return created


async def _delete(client: KubeClient, obj: Object) -> None:
    path = f"{_path(obj)}/{obj['metadata']['name']}"
    answer = await client.request("DELETE", path, body=msgspec.json.encode(NOW), timeout=30)
    answer.check()


async def _remove(client: KubeClient, obj: Object) -> None:
    if obj["metadata"].get("finalizers"):
        path = f"{_path(obj)}/{obj['metadata']['name']}"
        body = msgspec.json.encode({"metadata": {"finalizers": None}})
        kind = "application/merge-patch+json"
        await client.request("PATCH", path, body=body, content_type=kind, timeout=30)
        return
    await _delete(client, obj)


def _path(obj: Object) -> str:
    if obj["kind"] == "Pod":
        return f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods"
    return PATHS[obj["kind"]]


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
