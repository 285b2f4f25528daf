"""Pods and nodes that come and go, each with labels, amounts, images and names of its own."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage_host.kube import KubeClient

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
NODE_SECONDS = 2.0
"""How often a node is replaced by one that never was."""

LIFETIME = 30.0
"""Seconds that each pod lives."""

_AT_ONCE = 16


@dataclass(slots=True, kw_only=True)
class Churn:
    """Changes the cluster at a steady pace until cancelled.

    Attributes:
        client: The API server.
        nodes: How many nodes there are at any time.
        rate: Pods that are created in a second, and as many deleted.
        created: Pods so far.
        failed: Requests that the API server refused.
    """

    client: KubeClient
    nodes: int
    rate: float
    created: int = 0
    failed: int = 0
    _pods: deque[tuple[float, str]] = field(default_factory=deque)
    _names: deque[str] = field(default_factory=deque)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def fill(self) -> None:
        """Create the nodes."""
        for start in range(0, self.nodes, _AT_ONCE):
            count = min(_AT_ONCE, self.nodes - start)
            await asyncio.gather(*(self._new_node() for _ in range(count)))

    async def run(self) -> None:
        """Create and delete pods, and replace nodes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._replace_nodes())
            begin = time.monotonic()
            for number in itertools.count():
                await asyncio.sleep(max(begin + number / self.rate - time.monotonic(), 0))
                await self._new_pod(number)
                while self._pods and self._pods[0][0] < time.monotonic() - LIFETIME:
                    await self._send("DELETE", f"{PODS}/{self._pods.popleft()[1]}", _NOW)

    async def _replace_nodes(self) -> None:
        while True:
            await asyncio.sleep(NODE_SECONDS)
            await self._new_node()
            await self._send("DELETE", f"{NODES}/{self._names.popleft()}")

    async def _new_node(self) -> None:
        number = next(self._numbers)
        self._names.append(f"node-{number}")
        await self._send("POST", NODES, _node(number))

    async def _new_pod(self, number: int) -> None:
        name = f"pod-{number}"
        self._pods.append((time.monotonic(), name))
        self.created += 1
        await self._send("POST", PODS, _pod(number))

    async def _send(self, method: str, path: str, body: Any = None) -> None:
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self.client.request(method, path, body=encoded, timeout=30.0)
        self.failed += answer.status >= 400


_NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", f"example.com/device-{number}": "8"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {f"label-{number}": f"value-{number}"}},
        "spec": {},
        "status": {
            "allocatable": amounts,
            "images": [{"names": [f"registry/app:{number}"], "sizeBytes": 10**8 + number}],
        },
    }


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": f"{100 + number % 50}m", "memory": f"{64 + number % 64}Mi"}
    limits = {**requests, f"example.com/scarce-{number}": "0"}
    container = {
        "name": "main",
        "image": f"registry/app:{number}",
        "resources": {"requests": {**requests, f"example.com/scarce-{number}": "0"}}
        | {"limits": limits},
        "env": [{"name": "NUMBER", "value": str(number)}],
    }
    selector = {"labelSelector": {"matchLabels": {"app": f"app-{number}"}}}
    term = {**selector, "topologyKey": "kubernetes.io/hostname"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "labels": {"app": f"app-{number}", f"own-{number}": "yes"},
            "annotations": {"number": str(number)},
        },
        "spec": {
            "schedulerName": "moorage",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1 + number % 100, "podAffinityTerm": term}
                    ]
                }
            },
        },
    }
