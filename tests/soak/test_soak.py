"""Under steady churn no process keeps growing: `make soak MINUTES=30`, a few seconds else.

Pods and nodes come and go, each with labels, amounts, images and names of its own: also pods that
claim a node for those that follow, and groups. The policy is changed again and again.
"""

import asyncio
import itertools
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import linear_regression
from typing import Any

import aiohttp
import msgspec
import pytest

from cli.up.processes import Processes
from cli.up.processes.stack import StackOptions, start_stack
from moorage_host.kube import KubeClient, connect

LOG = logging.getLogger(__name__)

MINUTES = float(os.environ.get("MOORAGE_SOAK", "0.1"))
LONG = 5.0
"""Minutes from which on memory is judged: processes grow while they warm up, for a third."""

MOST_MEMORY = 24.0
"""MiB an hour that a process may gain after that."""

MOST: Mapping[str, int] = {"descriptors": 8, "threads": 4, "tasks": 20}
"""How many more a process may have in the end than at the begin."""

PROCESSES = ("gateway", "filter", "scorer-1", "binder")
SMALL = ("--decision-memory=6700000",)
"""Tables of the gateway whose bounds are not reached within the warm-up get smaller ones."""

EVERY = 1.0
"""Seconds between samples."""

CALM_SECONDS = 150.0
"""How long after the churn idle connections may stay open: clients close them after 90 s."""

PAGE = os.sysconf("SC_PAGE_SIZE")
POLICY = Path(__file__).with_name("policy.yaml").read_text()

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
NODE_SECONDS = 2.0
"""How often a node is replaced by one that never was."""

RELOAD_SECONDS = 10.0
"""How often the policy is changed."""

LIFETIME = 30.0
"""Seconds that each pod lives."""

_AT_ONCE = 16

COUNT, RATE = 200, 15.0
"""Nodes at any time; pods that are created in a second, and as many deleted."""

ROUND, TOGETHER = 30, 3
"""Of so many pods that follow each other, so many are of one run, and as many of one group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process uses: MiB of memory, open files, threads, tasks of its event loop."""

    memory: float
    descriptors: float
    threads: float
    tasks: float


Sample = tuple[float, Mapping[str, Usage]]
"""Minutes since the begin, and what each process used."""


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads what processes use, and what they have counted."""

    processes: Processes
    session: aiohttp.ClientSession

    async def usage(self) -> Mapping[str, Usage]:
        """Read what each process uses now."""
        found = {}
        for name in PROCESSES:
            proc = Path(f"/proc/{self.processes.named(name).pid}")
            found[name] = Usage(
                memory=int((proc / "statm").read_text().split()[1]) * PAGE / 2**20,
                descriptors=len(list((proc / "fd").iterdir())),
                threads=len(list((proc / "task").iterdir())),
                tasks=await self.metric(name, "moorage_tasks"),
            )
        return found

    async def metric(self, process: str, sample: str) -> float:
        """Return a sample of a process."""
        family, _, _ = sample.partition("{")
        url = f"http://{self.processes.named(process).served['admin']}/metrics"
        async with self.session.get(url, params={"name[]": family}) as answer:
            lines = (await answer.text()).splitlines()
        (value,) = (line.split()[-1] for line in lines if line.startswith(f"{sample} "))
        return float(value)


def more(begin: Mapping[str, Usage], calm: Mapping[str, Usage]) -> list[str]:
    """Return what processes have too many more of in the *calm* than at the begin."""
    gained = (
        (name, what, getattr(calm[name], what) - getattr(begin[name], what))
        for name, what in itertools.product(PROCESSES, MOST)
    )
    return [f"{name} has {n:g} more {what}" for name, what, n in gained if n > MOST[what]]


def grown(samples: Sequence[Sample], calm: Mapping[str, Usage]) -> list[str]:
    """Return what each process has too much of, after samples under churn, and in the *calm*."""
    minutes, problems = samples[-1][0], more(samples[0][1], calm)
    warm = [(at / 60, used) for at, used in samples if at >= minutes / 3]
    hours = [at for at, _ in warm]
    for name in PROCESSES:
        slopes = {}
        for each in fields(Usage):
            values = [getattr(used[name], each.name) for _, used in warm]
            slopes[each.name] = linear_regression(hours, values).slope
        last = warm[-1][1][name]
        shown = (f"{what} {getattr(last, what):.1f} {slopes[what]:+.1f}/h" for what in slopes)
        LOG.info("%-10s %s", name, ", ".join(shown))
        if minutes >= LONG and slopes["memory"] > MOST_MEMORY:
            problems.append(f"{name} grows by {slopes['memory']:.1f} MiB an hour")
    return problems


@pytest.mark.timeout(60 * MINUTES + 300)
async def test_no_process_keeps_growing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        processes = Processes(lambda _: None)
        stack.push_async_callback(processes.stop)
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY)
        options = StackOptions(
            directory=tmp_path,
            kubeconfig=None,
            config=policy,
            profiles=("moorage", "runs", "gangs"),
            plugins=(),
            gateway_options=SMALL,
        )
        addresses = await start_stack(options, processes)
        client = await connect(addresses.kubeconfig)
        stack.push_async_callback(client.close)
        meter = Meter(processes, await stack.enter_async_context(aiohttp.ClientSession()))
        churn = Churn(client=client, policy=policy)
        await churn.fill()
        work, start = asyncio.create_task(churn.run()), time.monotonic()
        samples: list[Sample] = []
        try:
            while (passed := (time.monotonic() - start) / 60) < MINUTES or len(samples) < 3:
                samples.append((passed, await meter.usage()))
                await asyncio.wait([work], timeout=EVERY)
                assert not work.done(), work.result()
        finally:
            work.cancel()
        calm, end = await meter.usage(), time.monotonic() + CALM_SECONDS
        while more(samples[0][1], calm) and time.monotonic() < end:
            await asyncio.sleep(EVERY)
            calm = await meter.usage()
        LOG.info("%d pods, %d requests refused", churn.created, churn.failed)
        for process, sample in HAPPENED:
            count = await meter.metric(process, sample)
            LOG.info("%s %s %d", process, sample, count)
            assert count, f"{process} has no {sample}"
        assert grown(samples, calm) == []


HAPPENED = (
    ("gateway", "moorage_claims_total"),
    ("gateway", 'moorage_policy_reloads_total{outcome="ok"}'),
    ("binder", 'moorage_binds_together_total{outcome="bound"}'),
)
"""What a soak has of claims, reloads and groups."""


def test_a_leak_is_found_and_what_is_gained_while_warming_up_is_none() -> None:
    def used(memory: float, **others: float) -> Mapping[str, Usage]:
        counts = {"descriptors": 30.0, "threads": 3.0, "tasks": 9.0} | others
        return dict.fromkeys(PROCESSES, Usage(memory=memory, **counts))

    steady = [(float(minute), used(min(50.0 + 10 * minute, 140.0))) for minute in range(30)]
    assert grown(steady, used(140.0)) == []
    for what, most in MOST.items():
        count = getattr(steady[0][1]["gateway"], what) + most + 1
        assert (
            grown(steady, used(140.0, **{what: count}))[0] == f"gateway has {most + 1} more {what}"
        )
    leaking = [(float(minute), used(100.0 + minute)) for minute in range(40)]
    assert grown(leaking, used(140.0))[0] == "gateway grows by 60.0 MiB an hour"


@dataclass(slots=True, kw_only=True)
class Churn:
    """Changes the cluster at a steady pace until cancelled.

    Attributes:
        client: The API server.
        policy: The file of the policy.
        created: Pods so far.
        failed: Requests that the API server refused.
    """

    client: KubeClient
    policy: Path
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
        """Create and delete pods, replace nodes, and change the policy."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._replace_nodes())
            group.create_task(self._change_policy())
            begin = time.monotonic()
            for number in itertools.count():
                await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
                await self._new_pod(number)
                while self._pods and self._pods[0][0] < time.monotonic() - LIFETIME:
                    await self._send("DELETE", f"{PODS}/{self._pods.popleft()[1]}", _NOW)

    async def _change_policy(self) -> None:
        for weight in itertools.cycle((2, 1)):
            self.policy.write_text(POLICY.replace("weight: 1", f"weight: {weight}"))
            await asyncio.sleep(RELOAD_SECONDS)

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
    profile, labels = _role(number)
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
            "labels": {"app": f"app-{number}", f"own-{number}": "yes"} | labels,
            "annotations": {"number": str(number)},
        },
        "spec": {
            "schedulerName": profile,
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


def _role(number: int) -> tuple[str, dict[str, str]]:
    """Return the profile of a pod, and the labels that say what it belongs to."""
    turn, place = divmod(number, ROUND)
    if place < TOGETHER:
        return "runs", {"tekton.dev/pipelineRun": f"run-{turn}"}
    if place < 2 * TOGETHER:
        return "gangs", {
            "moorage.io/group": f"group-{turn}",
            "moorage.io/group-size": str(TOGETHER),
        }
    return "moorage", {}
