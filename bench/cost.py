"""What one call makes Moorage do, counted: a cost that does not depend on the machine.

Real processes on the embedded API server, with one filter plugin, one score plugin and 40 nodes.
Each round counts in all processes from before a call until nothing of it is left. What happens in
the background falls into some rounds only, so the least of all rounds is the call's own.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec

from bench.processes import objects
from bench.processes.counted import Counts, Work
from bench.processes.objects import Object
from bench.processes.stacks import write_policy
from bench.report import COST, Results, Table, Verdict
from cli.up.processes import Processes
from cli.up.processes.process import Process
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from gateway.decisions.log import UNPACKED
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


class Step(NamedTuple):
    """A call that is counted, and the most that it may do; a test holds that.

    The alarms of filter and scorer, two calls each, may ring in all rounds of a step. Whoever
    raises a ceiling says in the change what the cycle gains by it.

    Attributes:
        name: What it is.
        short: The same as the head of a column.
        calls: The most calls of our own functions.
        classes: The most classes of ours.
        messages: The most messages from the gateway to services.
    """

    name: str
    short: str
    calls: int
    classes: int
    messages: int


FIRST, CACHED, CHANGED, AFTER, BIND, EVENT, POD_EVENT = STEPS = (
    Step("filter, a pod unlike any before, with its scores", "unlike", 255, 52, 2),
    Step("filter, a pod equal to those before, with its scores", "equal", 92, 33, 0),
    Step("the same after a bind, so about one node again", "after a bind", 302, 56, 2),
    Step("prioritize after filter", "prioritize", 28, 14, 0),
    Step("bind, with its events of the watch", "bind", 107, 37, 1),
    Step("one event of the watch: a node's label", "node event", 28, 8, 0),
    Step("one event of the watch: a pod's label", "pod event", 43, 11, 0),
)

OF_LIBRARIES = ("aiohttp", "grpc", "asyncio")
OTHER = "other libraries"

WAY = {
    "read body": ("gateway.edge", "moorage_host.http"),
    "decode": (
        "gateway.edge.requests",
        "moorage.models",
        "moorage.units",
        "moorage_host.rpc.describe",
    ),
    "profile": ("gateway.policy", "moorage.plugin", "moorage_host.plugins"),
    "turn": ("gateway.scheduling", "gateway.leadership"),
    "cache": ("gateway.replicas.cache", "gateway.replicas.cached"),
    "delta": ("gateway.cluster", "gateway.replicas.feed", "moorage.snapshot", "moorage_host.kube"),
    "send": ("gateway.replicas", "moorage_host.rpc"),
    "receive": ("gateway.replicas.reading", "moorage_host.rpc.convert"),
    "verdicts": ("moorage.execution", "moorage.in_tree", "services"),
    "bind": ("gateway.binding", "services.binder"),
    "answer": ("gateway.cycle", "gateway.edge.answers", "moorage_host.plugins.ranking"),
    "records": ("gateway.decisions", "gateway.cycle.cycle", "gateway.whatif"),
    "metrics": (
        "gateway.scheduling.metrics",
        "gateway.replicas.metrics",
        "services.binder.metrics",
        "moorage_host.process",
        "moorage_host.tracing",
        "prometheus_client",
    ),
    **{name: (name,) for name in OF_LIBRARIES},
}
"""What a call does, in order, and the modules that do it: the longest prefix counts."""

_PARTS = {prefix: part for part, prefixes in WAY.items() for prefix in prefixes}


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
            found: dict[Step, list[ByProcess]] = {step: [] for step in STEPS}
            for number in range(ROUNDS):
                progress(f"cost: round {number + 1} of {ROUNDS}")
                for step, counts in (await calls.round(number, processes.count)).items():
                    found[step].append(counts)
    finally:
        await processes.stop()
    report(results, {step: _least(rounds) for step, rounds in found.items()})


def _least(rounds: Sequence[ByProcess]) -> ByProcess:
    """Return the least that each process did: background work is in different rounds of each."""
    return {
        name: min((each[name] for each in rounds), key=lambda one: one.calls) for name in rounds[0]
    }


def calls_of(counts: ByProcess) -> int:
    """Return the calls of our functions in all processes."""
    return sum(one.calls for one in counts.values())


def part_of(module: str) -> str:
    """Return which part of a call's way a module is."""
    prefix = module
    while prefix and prefix not in _PARTS:
        prefix = prefix.rpartition(".")[0]
    return _PARTS.get(prefix, OTHER)


def report(results: Results, found: Mapping[Step, ByProcess]) -> None:
    """Add the tables, and the budgets."""
    rows = []
    for step, counts in found.items():
        ours = [*chain(*(one.ours().items() for one in counts.values()))]
        calls, classes = calls_of(counts), len({*chain(*(one.classes for one in counts.values()))})
        sent = sum(one.sent for one in counts.values())
        modules, awaits = len({name for name, _ in ours}), sum(work.awaits for _, work in ours)
        changes = sum(one.changes_of_room for one in counts.values())
        limited = f"{calls} of {step.calls}", f"{classes} of {step.classes}"
        rows.append((step.name, *limited, *map(str, (awaits, modules, changes, sent))))
        results.verdicts += [
            Verdict(part=COST, work=f"{unit}: {step.name}", limit=most, measured=had, unit=unit)
            for unit, most, had in (
                ("calls", step.calls, calls),
                ("classes", step.classes, classes),
                ("messages", step.messages, sent),
            )
        ]
    ledger = [*_ledger(found)]
    parts = len((*WAY, OTHER))
    results.tables.append(
        Table(
            part=COST,
            title="What one call makes Moorage do",
            caption="in all processes of Moorage together, of the most that is allowed; the least "
            "of all rounds",
            head=("", "our calls", "classes", "awaits", "modules", "changes of room", "messages"),
            rows=rows,
        )
    )
    results.tables += [
        Table(
            part=COST,
            title=title,
            caption="instructions of Python's interpreter (calls of functions)",
            head=("", *(step.short for step in found)),
            rows=work,
            published=published,
        )
        for title, work, published in (
            ("The way of a call", ledger[:parts], False),
            ("The work of each process", ledger[parts:], True),
        )
    ]


def _ledger(found: Mapping[Step, ByProcess]) -> Iterator[tuple[str, ...]]:
    """Yield what each part of the way and each process did at every step."""
    way: dict[str, list[Work]] = {part: [Work() for _ in found] for part in (*WAY, OTHER)}
    for column, counts in enumerate(found.values()):
        for process, one in counts.items():
            for module, work in one.modules.items():
                for row in (part_of(module), process):
                    total = way.setdefault(row, [Work() for _ in found])[column]
                    total.calls += work.calls
                    total.instructions += work.instructions
    for row, totals in way.items():
        yield row, *(f"{one.instructions:,} ({one.calls})" if one.calls else "" for one in totals)


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
        """Create the nodes, wait until the gateway knows them, and have it decide about many pods.

        From then on it packs the oldest decision with each that is new.
        """
        for node in self._nodes:
            await self._api("POST", "nodes", node)
        await until(self._knows_all, TIMEOUT)
        for number in range(UNPACKED):
            await self._ask("filter", _new_pod(f"earlier-{number}"))

    async def round(self, number: int, count: Count) -> dict[Step, ByProcess]:
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
        for event, path in (
            (EVENT, f"nodes/{self._names[0]}"),
            (POD_EVENT, f"namespaces/default/pods/{first['metadata']['name']}"),
        ):
            found[event] = await count(partial(self._api, "PATCH", path, label))
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
