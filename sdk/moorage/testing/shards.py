"""Checks on an author's example that a plugin answers the same when replicas share the nodes.

Authors import this from `moorage.testing`:

    def test_replicas_may_share_the_nodes() -> None:
        assert_same_in_shards(QuietZones(), make_pod(), make_node("a"), make_node("b"))
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from moorage.execution import ask_for_raw_scores, ask_for_scores, ask_to_normalize
from moorage.models import NodeManifest, Pod
from moorage.plugin.hooks import FilterPlugin, ScorePlugin
from moorage.snapshot import Nodes
from moorage.testing.given import NO_OBJECTS, GivenObjects, read_by
from moorage.testing.harness import cluster_for, complete, enable, started, verdicts


def assert_same_in_shards(
    plugin: FilterPlugin | ScorePlugin,
    pod: Pod,
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
    shards: int = 3,
) -> None:
    """Assert that *plugin* answers as one replica does when up to *shards* share the nodes.

    Each is asked about a part of the nodes, as the gateway does with several replicas: verdicts and
    annotations of a filter plugin, scores of a score plugin, after its `normalize`. So `prepare` of
    a filter plugin, and `filter` and `score`, must not compare the nodes with each other.

    Raises:
        AssertionError: The answers differ; the message has a node and both answers.
        PluginFailedError: The plugin raised, answered wrongly or took longer than its time budget.
        ValueError: There are fewer than two nodes, or as in `run_filter`.
        RuntimeError: It is called from a coroutine.
    """
    __tracebackhide__ = True
    if len(nodes) < 2:
        raise ValueError("one node cannot be shared: give more")
    cluster = cluster_for(pod, nodes, pods, objects=read_by(plugin, objects))
    if isinstance(plugin, FilterPlugin):
        complete(started(plugin, partial(_check_verdicts, plugin, pod, cluster, shards)))
    if isinstance(plugin, ScorePlugin):
        complete(started(plugin, partial(_check_scores, plugin, pod, cluster, shards)))


def _parts(cluster: Nodes, shards: int) -> Iterator[list[Nodes]]:
    """Yield the nodes in two parts, three, and so on."""
    for count in range(2, min(shards, len(cluster)) + 1):
        parts = np.array_split(np.arange(len(cluster)), count)
        yield [cluster.where(np.isin(np.arange(len(cluster)), part)) for part in parts]


async def _check_verdicts(plugin: FilterPlugin, pod: Pod, cluster: Nodes, shards: int) -> None:
    expected = await _verdicts(plugin, pod, cluster)
    for parts in _parts(cluster, shards):
        found: dict[str, Any] = {}
        for part in parts:
            found |= await _verdicts(plugin, pod, part)
        _compare(plugin, "verdict", expected, found, len(parts))


async def _verdicts(plugin: FilterPlugin, pod: Pod, nodes: Nodes) -> dict[str, Any]:
    given = await verdicts(plugin, pod, nodes)
    return {name: (verdict, plugin.annotations(name)) for name, verdict in given.items()}


async def _check_scores(plugin: ScorePlugin, pod: Pod, cluster: Nodes, shards: int) -> None:
    names = cluster.names
    enabled, supervisor = enable(plugin)
    alone = await ask_for_scores(enabled, pod, cluster, supervisor)
    expected = {} if alone is None else dict(zip(names, alone.normalized.tolist(), strict=True))
    for parts in _parts(cluster, shards):
        raw = [await ask_for_raw_scores(enabled, pod, cluster, each, supervisor) for each in parts]
        gathered = [each for each in raw if each is not None]
        found: dict[str, Any] = {}
        if len(gathered) == len(raw):
            whole = np.concatenate(gathered)
            together = await ask_to_normalize(enabled, pod, cluster, whole, supervisor)
            if together is not None:
                found = dict(zip(names, together.normalized.tolist(), strict=True))
        _compare(plugin, "score", expected, found, len(parts))


def _compare(
    plugin: FilterPlugin | ScorePlugin,
    what: str,
    expected: dict[str, Any],
    found: dict[str, Any],
    count: int,
) -> None:
    __tracebackhide__ = True
    for name in expected.keys() | found.keys():
        one, other = expected.get(name), found.get(name)
        if one != other:
            raise AssertionError(
                f"{plugin.name} compares nodes of a shard with each other: its {what} of {name} is "
                f"{one} for one replica, and {other} if {count} share the nodes"
            )
