"""What one call makes Moorage do, counted: a cost that does not depend on the machine.

Real processes on the embedded API server, with one filter plugin, one score plugin and 40 nodes.
Each round counts in all processes from before a call until nothing of it is left. What happens in
the background falls into some rounds only, so the least of all rounds is the call's own.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.processes import objects
from bench.processes.counted import Counts
from bench.processes.objects import Object
from bench.processes.stacks import write_policy
from bench.report import COST, Results, Table, Verdict
from cli.up.processes import Processes
from cli.up.processes.process import Process
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from sandbox.client import Api
from tools.waiting import until

NODES = 40
ROUNDS = 7
SETTLE_SECONDS = 0.15
"""After an answer, until what it causes in the background has been done."""

DELTA_SECONDS = 0.7
"""Until replicas were sent changes that no cycle has brought along; see `delta_interval`."""

TIMEOUT = 60.0

ByProcess = dict[str, Counts]
"""What each process did, by name."""

PROFILE = "cost"
PROFILES = {PROFILE: (("NodeResourcesFit",), (("NodeResourcesLeastAllocated", 1),))}

FIRST, CACHED, CHANGED, AFTER, BIND, EVENT = STEPS = (
    "filter, a pod unlike any before, with its scores",
    "filter, a pod equal to those before, with its scores",
    "the same after a bind, so about one node again",
    "prioritize after filter",
    "bind, with its events of the watch",
    "one event of the watch: a node's label",
)

CEILINGS = {FIRST: 255, CACHED: 88, CHANGED: 302, AFTER: 28, BIND: 107, EVENT: 28}
"""The most calls of our own functions that a step may make; a test holds them.

The alarms of filter and scorer, two calls each, may ring in all rounds of a step.

Whoever raises one says in the change what the cycle gains by it.
"""

MOST_CLASSES = {FIRST: 51, CACHED: 32, CHANGED: 56, AFTER: 14, BIND: 37, EVENT: 8}
"""The most classes of ours that a step may pass, held likewise."""

MESSAGES = {BIND: 1}
"""The most messages from the gateway to services."""


class _Counted(Processes):
    """Starts each process of Moorage so that it can count."""

    def __init__(self, directory: Path) -> None:
        super().__init__(lambda _: None)
        self.files: dict[str, Path] = {}
        self._directory = directory

    async def start(self, *groups: Sequence[Process]) -> None:
        for process in (each for group in groups for each in group):
            if not process.module.startswith("sandbox"):
                file = self.files[process.name] = self._directory / f"{process.name}.json"
                process.options = [str(file), process.module, *process.options]
                process.module = "bench.processes.counted"
        await super().start(*groups)

    async def count(self, work: Callable[[], Awaitable[object]]) -> ByProcess:
        """Return what the processes do while *work* is done, and shortly after."""
        for file in self.files.values():
            file.unlink(missing_ok=True)
        self._signal(signal.SIGUSR1)
        await work()
        await asyncio.sleep(SETTLE_SECONDS)
        self._signal(signal.SIGUSR2)
        await until(lambda: all(file.exists() for file in self.files.values()), TIMEOUT)
        return {
            name: msgspec.json.decode(file.read_bytes(), type=Counts)
            for name, file in self.files.items()
        }

    def _signal(self, number: signal.Signals) -> None:
        for name in self.files:
            os.kill(self.named(name).pid, number)


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Count every step, round by round."""
    config = directory / "policy.yaml"
    write_policy(config, PROFILES)
    options = StackOptions(
        directory=directory,
        kubeconfig=None,
        config=config,
        profiles=("elsewhere",),  # the stand-in for kube-scheduler leaves these pods alone
        plugins=(),
    )
    processes = _Counted(directory)
    try:
        addresses = await start_stack(options, processes)
        async with aiohttp.ClientSession() as session, Api(addresses.api) as api:
            calls = _Calls(session, api, addresses)
            await calls.prepare()
            await calls.round(-1, processes.count)  # warms up
            found: dict[str, list[ByProcess]] = {step: [] for step in STEPS}
            for number in range(ROUNDS):
                progress(f"cost: round {number + 1} of {ROUNDS}")
                for step, counts in (await calls.round(number, processes.count)).items():
                    found[step].append(counts)
    finally:
        await processes.stop()
    report(results, {step: min(rounds, key=calls_of) for step, rounds in found.items()})


def calls_of(counts: ByProcess) -> int:
    """Return the calls of our functions in all processes."""
    return sum(one.calls for one in counts.values())


def report(results: Results, found: Mapping[str, ByProcess]) -> None:
    """Add the table, and the budgets."""
    rows = []
    for step, counts in found.items():
        calls, classes = calls_of(counts), len({*chain(*(one.classes for one in counts.values()))})
        sent = sum(one.sent for one in counts.values())
        modules = len({*chain(*(one.modules for one in counts.values()))})
        changes = sum(one.changes_of_room for one in counts.values())
        parts = ", ".join(f"{name} {one.calls}" for name, one in counts.items() if one.calls)
        numbers = (calls, classes, modules, changes, sent)
        rows.append((step, *map(str, numbers), parts))
        for what, limits, measured in (
            ("calls", CEILINGS, calls),
            ("classes", MOST_CLASSES, classes),
            ("messages", MESSAGES, sent),
        ):
            if step in limits:
                work, limit = f"{what}: {step}", limits[step]
                results.verdicts.append(
                    Verdict(part=COST, work=work, limit=limit, measured=measured, unit=what)
                )
    results.tables.append(
        Table(
            part=COST,
            title="What one call makes Moorage do",
            caption="counted in all processes of Moorage together; the least of all rounds",
            head=(
                "",
                *("our calls", "classes", "modules", "changes of room", "messages"),
                "our calls by process",
            ),
            rows=rows,
        )
    )


Count = Callable[[Callable[[], Awaitable[object]]], Awaitable[ByProcess]]


class _Calls:
    """Asks the gateway what kube-scheduler asks, and changes the cluster."""

    def __init__(self, session: aiohttp.ClientSession, api: Api, addresses: Addresses) -> None:
        self._session = session
        self._cluster = api
        self._addresses = addresses
        self._nodes = [objects.light_node(number) for number in range(NODES)]
        self._names = [node["metadata"]["name"] for node in self._nodes]

    async def prepare(self) -> None:
        """Create the nodes, and wait until the gateway knows them and takes calls."""
        for node in self._nodes:
            await self._api("POST", "nodes", node)
        await until(self._knows_all, TIMEOUT)

    async def round(self, number: int, count: Count) -> dict[str, ByProcess]:
        """Do every step once with new pods."""
        names = ("first", "second", "third", "fourth")
        first, second, third, fourth = pods = [await self._pod(number, name) for name in names]
        found = {FIRST: await count(lambda: self._ask("filter", first))}
        found[AFTER] = await count(lambda: self._ask("prioritize", first))
        await self._ask("filter", second)
        await asyncio.sleep(SETTLE_SECONDS)  # until its nodes are scored
        found[CACHED] = await count(lambda: self._ask("filter", third))
        found[BIND] = await count(lambda: self._bind(first))
        await self._until_running(first)
        await asyncio.sleep(DELTA_SECONDS)
        found[CHANGED] = await count(lambda: self._ask("filter", fourth))
        label = {"metadata": {"labels": {"example.com/round": str(number + 1)}}}
        path = f"nodes/{self._names[0]}"
        found[EVENT] = await count(lambda: self._api("PATCH", path, label))
        for pod in pods:
            await self._api("DELETE", f"namespaces/default/pods/{pod['metadata']['name']}")
        await asyncio.sleep(DELTA_SECONDS)
        return found

    async def _pod(self, number: int, name: str) -> Object:
        pod = _new_pod(f"{name}-{number}")
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["memory"] = str((64 << 20) + number)  # unlike those of other rounds
        made = await self._api("POST", "namespaces/default/pods", pod)
        await asyncio.sleep(SETTLE_SECONDS)
        return made

    async def _ask(self, verb: str, pod: Object) -> Any:
        body = {"Pod": pod, "Nodes": None, "NodeNames": self._names}
        url = f"{self._addresses.extender}/{verb}"
        # Compact, as Go writes it: such a body is read in one pass.
        data, headers = msgspec.json.encode(body), {"Content-Type": "application/json"}
        async with self._session.post(url, data=data, headers=headers) as response:
            return await response.json(content_type=None)

    async def _bind(self, pod: Object) -> None:
        metadata = pod["metadata"]
        call = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": self._names[0],
        }
        async with self._session.post(f"{self._addresses.extender}/bind", json=call) as response:
            answer = await response.json(content_type=None)
        if answer["Error"]:
            raise RuntimeError(f"the bind failed: {answer['Error']}")

    async def _until_running(self, pod: Object) -> None:
        """Wait until a bound pod runs: that is one more event of the watch."""
        path = f"namespaces/default/pods/{pod['metadata']['name']}"

        async def runs() -> bool:
            return bool((await self._api("GET", path))["status"]["phase"] == "Running")

        await until(runs, TIMEOUT)

    async def _knows_all(self) -> bool:
        async with self._session.get(f"{self._addresses.admin}/readyz") as response:
            if response.status != 200:
                return False
        answer = await self._ask("filter", _new_pod("probe"))
        return not answer["Error"] and len(answer["NodeNames"]) == NODES

    async def _api(self, method: str, path: str, body: Object | None = None) -> Object:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return await self._cluster.request(method, f"/api/v1/{path}", body, kind)


def _new_pod(name: str) -> Object:
    pod = objects.new_pod()
    pod["metadata"] |= {"name": name, "uid": name}
    pod["metadata"].pop("ownerReferences", None)  # of an owner that does not exist
    pod["spec"]["schedulerName"] = PROFILE
    return pod
