"""Who is asked at the edge: two Go extenders, the floor, and Moorage with each profile."""

from bench.processes import policies
from bench.processes.goprograms import NOTHING, PLUGINS
from bench.processes.load import Contender, Pods
from bench.processes.stacks import Bench, Cluster, GoExtender, Stack

REFERENCE = "go nothing"
GO_PLUGINS = "go 3+3"
FLOOR = "floor"
"""HTTP and one message over gRPC a call, in Python; understands names only."""

EMPTY_PROFILE = "moorage, empty profile"
"""A profile without plugins: no replica is asked."""

MAIN, PER_NODE = "moorage 3+3", "moorage per node 3+3"
"""What the budgets are about: three filters and three scores, for all nodes at once or for one."""

NUMBERED = f"{MAIN}, numbered pods"
"""The same processes and the same profile, asked about pods as those of a StatefulSet."""


async def contenders(bench: Bench, cluster: Cluster) -> dict[str, Contender]:
    """Start everything that is asked; return it by name."""
    nothing = await bench.go_extender(NOTHING)
    plugins = await bench.go_extender(PLUGINS, f"-api={cluster.api}")
    url, pids = await bench.floor()
    stack = await bench.moorage("moorage", cluster.kubeconfig)
    found = [
        of_go(REFERENCE, nothing),
        of_go(GO_PLUGINS, plugins),
        Contender(FLOOR, url, pids=pids),
        of_moorage(EMPTY_PROFILE, stack, policies.EMPTY),
        of_moorage(MAIN, stack, policies.BATCH),
        of_moorage(PER_NODE, stack, policies.PER_NODE),
        # The last, so that its turn hardly ever comes directly after that of the same profile.
        of_moorage(NUMBERED, stack, policies.BATCH, "numbered"),
    ]
    return {contender.name: contender for contender in found}


def of_go(name: str, extender: GoExtender) -> Contender:
    """Return a Go extender as a contender."""
    return Contender(name, extender.url, pids=[extender.pid])


def of_moorage(name: str, stack: Stack, profile: str, pods: Pods = "unlike") -> Contender:
    """Return Moorage with one of its profiles as a contender."""
    return Contender(name, stack.addresses.extender, profile, [*stack.pids.values()], pods)
