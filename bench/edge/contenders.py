"""Who is asked at the edge: two Go extenders, the floor, and Moorage with each profile."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from bench.processes.goprograms import NOTHING, PLUGINS
from bench.processes.load import Contender
from bench.processes.policies import (
    COUNTS,
    EMPTY,
    PER_NODE_PLUGINS,
    Form,
    policy,
    profile_name,
)
from bench.processes.stacks import Bench, Cluster, GoExtender, Stack

REFERENCE = "go nothing"
GO_PLUGINS = "go 3+3"
FLOOR = "floor"
"""HTTP and one message over gRPC a call, in Python; understands names only."""

EMPTY_PROFILE = "moorage, empty profile"
"""A profile without plugins: no replica is asked."""

MAIN = "moorage 3+3"
"""What the budgets are about: three filters and three scores in batch form, one scorer."""

NUMBERED = f"{MAIN}, numbered pods"
"""The same processes and the same profile, asked about pods as those of a StatefulSet."""

MANY_SCORERS = 3
SCATTERED = f"moorage {MANY_SCORERS} scorers"
SCATTERED_COUNTS = (3, 10)

PLUGIN_FILES = (PER_NODE_PLUGINS,)


async def contenders(bench: Bench, cluster: Cluster, *, quick: bool) -> dict[str, Contender]:
    """Start everything that is asked; return it by name."""
    found = [
        of_go(REFERENCE, await bench.go_extender(NOTHING)),
        of_go(GO_PLUGINS, await bench.go_extender(PLUGINS, f"-api={cluster.api}")),
    ]
    url, pids = await bench.floor()
    found.append(Contender(FLOOR, url, pids=pids))
    stack = await bench.moorage("moorage", cluster.kubeconfig, policy(), plugins=PLUGIN_FILES)
    found.append(of_moorage(EMPTY_PROFILE, stack, EMPTY))
    found += _profiles(stack, "moorage", "batch", COUNTS)
    found += _profiles(stack, "moorage per node", "per node", COUNTS)
    if not quick:
        more = await bench.moorage(
            "moorage-scorers",
            cluster.kubeconfig,
            policy(),
            scorers=MANY_SCORERS,
            plugins=PLUGIN_FILES,
        )
        found += _profiles(more, SCATTERED, "batch", SCATTERED_COUNTS)
        found += _profiles(more, f"{SCATTERED} per node", "per node", SCATTERED_COUNTS)
    by_name = {contender.name: contender for contender in found}
    # The last, so that its turn hardly ever comes directly after that of the same processes.
    return {**by_name, NUMBERED: replace(by_name[MAIN], name=NUMBERED, pods="numbered")}


def of_go(name: str, extender: GoExtender) -> Contender:
    """Return a Go extender as a contender."""
    return Contender(name, extender.url, pids=[extender.pid])


def of_moorage(name: str, stack: Stack, profile: str) -> Contender:
    """Return Moorage with one of its profiles as a contender."""
    return Contender(name, stack.addresses.extender, profile, pids=[*stack.pids.values()])


def _profiles(stack: Stack, name: str, form: Form, counts: Sequence[int]) -> Iterator[Contender]:
    for count in counts:
        yield of_moorage(f"{name} {count}+{count}", stack, profile_name(form, count))
