"""Pod groups: how long kube-scheduler takes to place one of 100 pods, on a real control plane.

With the feature gates GenericWorkload and TopologyAwareWorkloadScheduling kube-scheduler filters
all members in one cycle. Where they have to share a rack, it does so for one rack after another,
before it chooses. So a group of 100 pods on 20 racks may ask an extender 2,000 times.
"""

import secrets
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec

from bench import report
from bench.cluster import CASES, GO, MOORAGE, WITHOUT, scheduler_config
from bench.processes import objects
from bench.processes.control_plane import NODES as NODES_PATH
from bench.processes.control_plane import Batch, ControlPlane, started
from bench.processes.goprograms import NOTHING
from bench.processes.objects import NAMESPACE, Object
from bench.processes.stacks import BATCH, opened
from bench.report import Results, Table

NODES, RACKS, MEMBERS, ROUNDS = 1000, 20, 100, 3
RACK = "example.com/rack"
GATES = (
    "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
    "scheduling.k8s.io/v1beta1=true",
)
CALLS = "moorage_extender_requests_total"
GROUPS = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
CONSTRAINTS: dict[str, Object] = {
    "on any nodes": {},
    "in one rack": {"schedulingConstraints": {"topology": [{"key": RACK}]}},
}


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Measure a group on any nodes and in one rack, without an extender and with two."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    calls: dict[str, int] = {}
    async with started(directory, progress, *GATES) as plane, opened(directory, progress) as bench:
        await plane.create(NODES_PATH, map(_node, range(NODES)))
        go = await bench.go_extender(NOTHING, f"-kubeconfig={plane.kubeconfig}")
        stack = await bench.moorage(plane.kubeconfig)
        urls = {WITHOUT: "", GO: go.url, MOORAGE: stack.addresses.extender}
        for number in range(-1, 1 if results.quick else ROUNDS):  # the first warms up
            for where, constraints in CONSTRAINTS.items():
                for name in urls if number % 2 else reversed(urls):
                    before = await stack.counted(CALLS, verb="filter")
                    seconds = await _place(plane, name, urls[name], constraints)
                    progress(f"a group of {MEMBERS} {where}: {name}: {seconds:.2f} s")
                    if number >= 0:
                        times[where, name].append(seconds)
                    if name == MOORAGE:
                        after = await stack.counted(CALLS, verb="filter")
                        calls[where] = int(after - before)
    results.tables.append(
        Table(
            part=report.GROUPS,
            title=f"A pod group of {MEMBERS}",
            caption="seconds from when it is complete until its last pod is bound: "
            "median of the runs",
            head=("", "seconds", "ratio", "filter calls", "runs"),
            rows=[
                (
                    f"{name}, {where}",
                    f"{median(runs):.2f}",
                    f"{median(runs) / median(times[where, WITHOUT]):.2f}",
                    f"{calls[where]:,}" if name == MOORAGE else "",
                    ", ".join(f"{each:.2f}" for each in runs),
                )
                for (where, name), runs in sorted(times.items(), key=_order)
            ],
        )
    )


def _order(item: tuple[tuple[str, str], object]) -> tuple[int, int]:
    where, name = item[0]
    return [*CONSTRAINTS].index(where), (WITHOUT, GO, MOORAGE).index(name)


async def _place(plane: ControlPlane, name: str, url: str, constraints: Object) -> float:
    """Return the seconds from when a group is complete until its last pod is bound."""
    case = next(case for case in CASES if case.name == name)
    spec = {"schedulingPolicy": {"gang": {"minCount": MEMBERS}}, **constraints}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "spec": spec}
    of = secrets.token_hex(4)  # nobody removes the finalizer of an earlier one
    body = msgspec.json.encode({**group, "metadata": {"name": of}})

    async def complete() -> None:
        (await plane.client.request("POST", GROUPS, body=body, timeout=30)).check()

    pods = Batch(prefix=of, profile=BATCH, group=of, waiting=MEMBERS)
    try:
        return await plane.seconds_to_bind(pods, scheduler_config(case, url), complete)
    finally:
        await plane.delete_pods()


def _node(number: int) -> Object:
    node = objects.light_node(number)
    node["metadata"]["labels"][RACK] = f"rack-{number % RACKS}"
    return node
