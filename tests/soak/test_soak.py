"""Under steady churn no process keeps growing: `make soak MINUTES=30`, a few seconds else.

Pods and nodes come and go, each with labels, amounts, images and names of its own.
"""

import asyncio
import itertools
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression
from typing import Any

import msgspec
import pytest

from cli.up.processes import Processes
from cli.up.processes.stack import StackOptions, start_stack
from moorage_host.kube import KubeClient, connect

LOG = logging.getLogger(__name__)

MINUTES = float(os.environ.get("MOORAGE_SOAK", "0.1"))
LONG = 5.0
"""Minutes from which on memory is judged: processes grow while they warm up, for a third."""

MOST = 24.0
"""MiB an hour that a process may gain after that."""

MOST_DESCRIPTORS, MOST_THREADS = 8, 4
"""How many more a process may have in the end than at the begin."""

PROCESSES = ("gateway", "filter", "scorer-1", "binder")
SMALL = ("--decision-memory=6700000",)
"""Tables of the gateway whose bounds are not reached within the warm-up get smaller ones."""

EVERY = 1.0
"""Seconds between samples."""

CALM_SECONDS = 150.0
"""How long after the churn idle connections may stay open: clients close them after 90 s."""

PAGE = os.sysconf("SC_PAGE_SIZE")

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
NODE_SECONDS = 2.0
"""How often a node is replaced by one that never was."""

LIFETIME = 30.0
"""Seconds that each pod lives."""

_AT_ONCE = 16

COUNT, RATE = 200, 15.0
"""Nodes at any time; pods that are created in a second, and as many deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process uses; memory in MiB."""

    rss: float
    descriptors: int
    threads: int


Sample = tuple[float, Mapping[str, Usage]]
"""Minutes since the begin, and what each process used."""


def usage(processes: Processes) -> Mapping[str, Usage]:
    """Read what each process uses now."""
    found = {}
    for name in PROCESSES:
        proc = Path(f"/proc/{processes.named(name).pid}")
        found[name] = Usage(
            rss=int((proc / "statm").read_text().split()[1]) * PAGE / 2**20,
            descriptors=len(list((proc / "fd").iterdir())),
            threads=len(list((proc / "task").iterdir())),
        )
    return found


def has_closed(samples: Sequence[Sample], calm: Mapping[str, Usage]) -> bool:
    """Whether no process has more open than at the begin."""
    return all(
        calm[name].descriptors <= samples[0][1][name].descriptors + MOST_DESCRIPTORS
        for name in PROCESSES
    )


def grown(samples: Sequence[Sample], calm: Mapping[str, Usage]) -> list[str]:
    """Return what each process has too much of, after samples under churn, and in the *calm*."""
    minutes, begin = samples[-1][0], samples[0][1]
    problems = [] if has_closed(samples, calm) else ["connections or files stay open"]
    for name in PROCESSES:
        if (more := calm[name].threads - begin[name].threads) > MOST_THREADS:
            problems.append(f"{name} has {more} more threads")
        warm = [(at / 60, used[name].rss) for at, used in samples if at >= minutes / 3]
        slope = linear_regression(*zip(*warm, strict=True)).slope
        LOG.info("%-10s %6.1f MiB, %+7.1f MiB/h", name, warm[-1][1], slope)
        if minutes >= LONG and slope > MOST:
            problems.append(f"{name} grows by {slope:.1f} MiB an hour")
    return problems


@pytest.mark.timeout(60 * MINUTES + 300)
async def test_no_process_keeps_growing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        processes = Processes(lambda _: None)
        stack.push_async_callback(processes.stop)
        options = StackOptions(
            directory=tmp_path,
            kubeconfig=None,
            config=Path(__file__).with_name("policy.yaml"),
            profiles=("moorage",),
            plugins=(),
            gateway_options=SMALL,
        )
        addresses = await start_stack(options, processes)
        client = await connect(addresses.kubeconfig)
        stack.push_async_callback(client.close)
        churn = Churn(client=client)
        await churn.fill()
        work, start = asyncio.create_task(churn.run()), time.monotonic()
        samples: list[Sample] = []
        try:
            while (passed := (time.monotonic() - start) / 60) < MINUTES or len(samples) < 3:
                samples.append((passed, usage(processes)))
                await asyncio.wait([work], timeout=EVERY)
                assert not work.done(), work.result()
        finally:
            work.cancel()
        calm, end = usage(processes), time.monotonic() + CALM_SECONDS
        while not has_closed(samples, calm) and time.monotonic() < end:
            await asyncio.sleep(EVERY)
            calm = usage(processes)
        LOG.info("%d pods, %d requests refused", churn.created, churn.failed)
        assert grown(samples, calm) == []


def test_a_leak_is_found_and_what_is_gained_while_warming_up_is_none() -> None:
    def used(rss: float, descriptors: int = 30, threads: int = 3) -> Mapping[str, Usage]:
        return dict.fromkeys(PROCESSES, Usage(rss=rss, descriptors=descriptors, threads=threads))

    steady = [(float(minute), used(min(50.0 + 10 * minute, 140.0))) for minute in range(30)]
    assert grown(steady, used(140.0)) == []
    assert grown(steady, used(140.0, 39)) == ["connections or files stay open"]
    assert grown(steady, used(140.0, threads=8))[0] == "gateway has 5 more threads"
    leaking = [(float(minute), used(100.0 + minute)) for minute in range(40)]
    assert grown(leaking, used(140.0))[0] == "gateway grows by 60.0 MiB an hour"


@dataclass(slots=True, kw_only=True)
class Churn:
    """Changes the cluster at a steady pace until cancelled.

    Attributes:
        client: The API server.
        created: Pods so far.
        failed: Requests that the API server refused.
    """

    client: KubeClient
    created: int = 0
    failed: int = 0
    _pods: deque[tuple[float, str]] = field(default_factory=deque)
    _names: deque[str] = field(default_factory=deque)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def fill(self) -> None:
        """Create the nodes."""
        for start in range(0, COUNT, _AT_ONCE):
            count = min(_AT_ONCE, COUNT - start)
            await asyncio.gather(*(self._new_node() for _ in range(count)))

    async def run(self) -> None:
        """Create and delete pods, and replace nodes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._replace_nodes())
            begin = time.monotonic()
            for number in itertools.count():
                await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
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
