"""Simulates one policy or two on a copy of a cluster each, and puts the results side by side."""

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console

from cli.config.policies import ChosenPolicy, choose_policy, load_registries
from cli.shared.given import GivenPlugin, weights_of
from cli.shared.manifests import Object, key_of, serve
from cli.shared.screen import Screen
from cli.whatif.simulate.configured import asked, configured
from cli.whatif.simulate.moorage import InProcess
from cli.whatif.simulate.placing import Placing, SimulatedPlacement, copy_of, left_out
from cli.whatif.simulate.reading import MIRROR, read_dump, read_pods, with_more_nodes
from moorage import Nodes, Pod
from moorage.models import ObjectKind
from moorage.snapshot import Snapshot
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.plugins.host import PluginHost

NAMES = ("A", "B")

ALWAYS = ("cpu", "memory", "pods")
"""Resources that are measured in any case; others if a pod asks for them."""


MOST = 10
"""Evicted pods that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """What the user gave."""

    cluster: Path
    pods: Path
    count: int | None
    more_nodes: int
    configs: tuple[Path, ...]
    plugins: tuple[GivenPlugin, ...]
    scheduler_config: Path | None

    @property
    def paths(self) -> list[Path]:
        """The files and folders with plugins."""
        return [each.path for each in self.plugins]


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of a resource is requested.

    Attributes:
        used: The share of the cluster, 0..1.
        std_dev: The standard deviation of the nodes' shares: 0 if all are equally full.
        largest_free: The largest free amount on one node.
    """

    used: float
    std_dev: float
    largest_free: int


class Measures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a cluster looks like.

    Attributes:
        nodes: How many nodes there are.
        nodes_used: How many have a pod that is not of a DaemonSet.
        resources: The use of each resource.
    """

    nodes: int
    nodes_used: int
    resources: dict[str, ResourceUse]


class Variant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One policy, and what became of the pods with it.

    Attributes:
        name: "A", "B".
        policy: Where the policy is from.
        notes: What people should know.
        placed: How many pods have a node.
        pending: How many have none.
        attempts: How many scheduling cycles there were.
        seconds: How long they took.
        after: What the cluster looks like with the pods.
        placements: What became of each pod, in the order of the file.
    """

    name: str
    policy: str
    notes: list[str]
    placed: int
    pending: int
    attempts: int
    seconds: float
    after: Measures
    placements: list[SimulatedPlacement]


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a simulation found out.

    Attributes:
        cluster: Where the cluster is from.
        pods: How many pods there are to place.
        notes: What people should know.
        before: What the cluster looks like without them.
        policies: What became of them with each policy.
        moved: The pods that the second policy places elsewhere than the first.
    """

    cluster: str
    pods: int
    notes: list[str]
    before: Measures
    policies: list[Variant]
    moved: list[str]


def simulate(options: SimulateOptions) -> Result:
    """Read everything and simulate.

    Raises:
        ConfigurationError: Something that was given is wrong; the message names the place.
    """
    given = options.configs or (None,)
    weights = weights_of(options.plugins)
    policies = [choose_policy(each, options.paths, weights) for each in given]
    readers: dict[ObjectKind, str] = {}
    for policy in policies:
        readers |= dict(policy.readers(("filter", "score")))  # nothing is bound
    return asyncio.run(_simulate(options, policies, readers))


async def _simulate(
    options: SimulateOptions, policies: Sequence[ChosenPolicy], readers: Mapping[ObjectKind, str]
) -> Result:
    cluster = read_dump(options.cluster, readers)
    pods, notes = read_pods(options.pods, options.count, cluster)
    moved = set(map(key_of, pods))
    clusters = [cluster] * len(policies)
    if options.more_nodes:
        clusters.append(larger := with_more_nodes(cluster, options.more_nodes))
        policies = [*policies, replace(policies[0], notes=tuple(larger.notes))]
    before = copy_of(cluster, moved)
    asked = {name for pod in pods for name in KnownPod(pod).pod.requests}
    resources = _resources_of(before.snapshot, asked)
    variants: list[Variant] = []
    elsewhere: list[str] = []
    others: dict[str, str] = {}
    for name, policy, of in zip(NAMES, policies, clusters, strict=False):
        cache = copy_of(of, moved)
        variant = await _variant(name, policy, cache, pods, options, others, resources)
        variants.append(variant)
        places = {each.pod: each.node for each in variant.placements}
        elsewhere = [pod for pod, node in others.items() if places[pod] != node]
        others = places
    return Result(
        cluster=cluster.place,
        pods=len(pods),
        notes=[*cluster.notes, *left_out(cluster, moved), *notes],
        before=_measure(before.snapshot, resources),
        policies=variants,
        moved=elsewhere,
    )


async def _variant(
    name: str,
    policy: ChosenPolicy,
    cache: SchedulerCache,
    pods: Sequence[Object],
    options: SimulateOptions,
    others: Mapping[str, str],
    resources: Sequence[str],
) -> Variant:
    resolved = policy.resolved
    profiles = resolved.profile_names
    configuration, notes = configured(options.scheduler_config, profiles, resolved.score_scale)
    pods = [{**each, "spec": dict(each["spec"])} for each in pods]
    notes += serve((each["spec"] for each in pods), configuration.scheduler_names)
    registries = load_registries(options.paths)
    filters, scorers = PluginHost(registries["filter"]), PluginHost(registries["score"])
    try:
        moorage = InProcess(
            cache,
            asked(configuration),
            filters=await filters.use(resolved.revision, resolved.for_kind("filter")),
            scorers=await scorers.use(resolved.revision, resolved.for_kind("score")),
            score_scale=resolved.score_scale,
        )
        placing = Placing(cache, configuration, moorage, others=others)
        screen = Screen(Console(stderr=True, markup=False, emoji=False, highlight=False))
        with screen.progress(f"Placing pods, policy {name}", len(pods)) as done:
            start = time.perf_counter()
            placements, attempts = await placing.run(list(map(KnownPod, pods)), done)
            seconds = time.perf_counter() - start
    finally:
        await filters.close()
        await scorers.close()
    pending = sum(not each.node for each in placements)
    return Variant(
        name=name,
        policy=resolved.source,
        notes=[
            *policy.notes,
            *notes,
            *(f"{n} x {p}" for p, n in moorage.remarks.items()),
            *_evictions(placing.evicted),
        ],
        placed=len(placements) - pending,
        pending=pending,
        attempts=attempts,
        seconds=round(seconds, 3),
        after=_measure(cache.snapshot, resources),
        placements=placements,
    )


def _evictions(evicted: Mapping[str, str]) -> Iterator[str]:
    """Yield which pods had to go."""
    if evicted:
        shown = [f"{victim} for {pod}" for victim, pod in itertools.islice(evicted.items(), MOST)]
        more = f" and {len(evicted) - MOST} more" if len(evicted) > MOST else ""
        yield f"evicted to make room for pods of higher priority: {', '.join(shown)}{more}"


def _resources_of(snapshot: Snapshot, others: Iterable[str]) -> list[str]:
    """Return the resources to measure: the usual ones, those of pods, and those of *others*."""
    pods = (pod for row in snapshot.nodes().rows for pod in snapshot.pods_at(int(row)))
    asked = {name for pod in pods for name, amount in pod.requests.items() if amount}
    return list(dict.fromkeys((*ALWAYS, *sorted(asked), *sorted(others))))


def _measure(snapshot: Snapshot, resources: Iterable[str]) -> Measures:
    """Return what the cluster looks like now."""
    nodes = snapshot.nodes()
    return Measures(
        nodes=len(nodes),
        nodes_used=sum(any(not _is_on_each(pod) for pod in node.pods) for node in nodes),
        resources={name: use for name in resources if (use := _use(nodes, name))},
    )


def _use(nodes: Nodes, resource: str) -> ResourceUse | None:
    """Return the use of a resource; None if no node has it."""
    allocatable, requested = nodes.allocatable(resource), nodes.requested(resource)
    has = allocatable > 0
    if not has.any():
        return None
    return ResourceUse(
        used=float(requested[has].sum() / allocatable.sum()),
        std_dev=float((requested[has] / allocatable[has]).std()),
        largest_free=int(np.maximum(allocatable - requested, 0).max()),
    )


def _is_on_each(pod: Pod) -> bool:
    """Whether each node has such a pod, which does not show whether the node is needed."""
    return (pod.owner is not None and pod.owner.kind in ("DaemonSet", "Node")) or (
        MIRROR in pod.annotations
    )
