"""Runs one plugin on built nodes and pods, as a service would but without any server.

Authors import this from `moorage.testing`:

    def test_hot_nodes_are_rejected() -> None:
        hot = make_node("hot", annotations={"example.com/temperature": "90"})
        verdicts = run_filter(MaxTemperature(), make_pod(), hot)
        assert verdicts == {"hot": Rejection("node is too hot")}

The functions are synchronous, so that tests are; an async test calls them by `asyncio.to_thread`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from moorage.errors import PluginFailedError
from moorage.execution import (
    EnabledPlugin,
    Profile,
    Supervisor,
    ask_before_bind,
    ask_for_group,
    ask_for_raw_scores,
    ask_for_scores,
    ask_for_verdicts,
    ask_to_permit,
    permit_key_of,
    start_plugin,
    stop_plugin,
    tried,
)
from moorage.models import NodeManifest, Pod
from moorage.plugin.hooks import BindPlugin, FilterPlugin, Plugin, ScorePlugin
from moorage.plugin.normalization import Scores
from moorage.plugin.values import Binding, DecisionSummary, Permission, Refusal
from moorage.snapshot import Nodes, Snapshot
from moorage.snapshot.placements import LONG_AGO
from moorage.snapshot.verdicts import Rejection
from moorage.testing.given import NO_OBJECTS, GivenObjects, manifest_of, read_by, store_of

T = TypeVar("T")


def complete(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end.

    Raises:
        RuntimeError: It is called from a coroutine.
    """
    __tracebackhide__ = True
    with closing(coroutine):
        if _is_in_loop():
            raise RuntimeError(
                "the functions of moorage.testing are synchronous: call them from a test that is "
                "not async, or by asyncio.to_thread"
            )
        try:
            return asyncio.run(coroutine)
        except PluginFailedError as error:
            failure = _shortened(error)
    raise failure


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _shortened(error: PluginFailedError) -> PluginFailedError:
    """Remove the frames that are not the plugin's, so that pytest shows the test and the plugin."""
    if (cause := error.__cause__) is not None:
        place = cause.__traceback__
        while place and place.tb_next and _is_ours(place.tb_frame.f_globals):
            place = place.tb_next
        cause.__traceback__ = place
    return error.with_traceback(None)


def _is_ours(variables: Mapping[str, Any]) -> bool:
    return str(variables.get("__name__", "")).partition(".")[0] in ("moorage", "asyncio")


def make_nodes(
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> Nodes:
    """Select all *nodes*, in order, of a snapshot with pods on the nodes that they name.

    Args:
        nodes: The nodes.
        pods: Pods that have long been there.
        new_pods: Pods that came to their nodes just now.
        objects: Manifests of additional kinds.

    Raises:
        ValueError: Two nodes, pods or objects share a name or uid, or a pod's node is not there.
    """
    old_pods, new_pods = tuple(pods), tuple(new_pods)
    pods = (*old_pods, *new_pods)
    _check_distinct("nodes have the name", (node.name for node in nodes))
    _check_distinct("pods have the name", (f"{pod.namespace}/{pod.name}" for pod in pods))
    _check_distinct("pods have the uid", (pod.uid for pod in pods))
    snapshot = Snapshot()
    for row, node in enumerate(nodes):
        snapshot.set_node(row, node)
    for index, pod in enumerate(pods):
        place = snapshot.row_of(pod.spec.node_name)
        if place is None:
            raise ValueError(
                f"pod {pod.namespace}/{pod.name} is on node {pod.spec.node_name!r}, which is not "
                "among the nodes"
            )
        snapshot.place_pod(place, pod, since=LONG_AGO if index < len(old_pods) else None)
    snapshot.objects = store_of(objects)
    return snapshot.nodes()


def cluster_for(
    pod: Pod,
    nodes: Iterable[NodeManifest],
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> Nodes:
    """Select all nodes of a cluster in which *pod* is to be placed, see `make_nodes`."""
    pods, new_pods = tuple(pods), tuple(new_pods)
    if any(other.uid == pod.uid for other in (*pods, *new_pods)):
        raise ValueError(
            f"pod {pod.namespace}/{pod.name} cannot be placed and on a node at the same time: "
            "give the others another name"
        )
    return make_nodes(*nodes, pods=pods, new_pods=new_pods, objects=objects)


def _check_distinct(what: str, values: Iterable[str]) -> None:
    for value, count in Counter(values).most_common(1):
        if count > 1:
            raise ValueError(f"{count} {what} {value!r}: give each its own")


def run_filter(
    plugin: FilterPlugin,
    pod: Pod,
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> dict[str, Rejection | None]:
    """Return for each node why *plugin* rejects it for *pod*, or None if it does not.

    Args:
        plugin: The plugin; started for the call and stopped after it, unless it is `running`.
        pod: The pod to place.
        nodes: All nodes of the cluster.
        pods: The other pods, on their nodes.
        new_pods: More of them, which came to their nodes just now.
        objects: Manifests of the additional kinds that the plugin reads.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly or took longer than its time budget.
        ValueError: Two nodes, pods or objects share a name or uid, a pod's node is not there, or
            objects are of a kind that the plugin does not read.
        RuntimeError: It is called from a coroutine.
    """
    __tracebackhide__ = True
    cluster = cluster_for(pod, nodes, pods, new_pods, read_by(plugin, objects))
    return complete(started(plugin, lambda: verdicts(plugin, pod, cluster)))


def run_group(
    plugin: FilterPlugin,
    pod: Pod,
    *nodes: NodeManifest,
    waiting: Iterable[Pod] = (),
    pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
    others: Iterable[FilterPlugin] = (),
) -> dict[str, str] | Rejection | None:
    """Return where the pods of the group of *pod* go, or why it does not fit; None without a group.

    Args:
        plugin: The plugin that names the group.
        pod: The pod in whose cycle that is.
        nodes: All nodes of the cluster.
        waiting: The other pods without a node.
        pods: Those on nodes.
        objects: Manifests of the additional kinds that the plugins read, other than pods.
        others: Further filter plugins of the profile, which the pods have to pass.

    Returns:
        The node of each pod of the group that was on none, by the pod's name.

    Raises: The same as `run_filter`.
    """
    __tracebackhide__ = True
    waiting, pods = list(waiting), list(pods)
    everyone = [manifest_of(each) for each in (pod, *waiting, *pods)]
    kinds = {kind for each in (plugin, *others) for kind in each.reads}
    found = {
        k: everyone if k.plural == "pods" and not k.group else objects.get(k, ()) for k in kinds
    }
    cluster = cluster_for(pod, nodes, pods, (), found)
    profile = Profile(name="", plugins=tuple(enable(each)[0] for each in (plugin, *others)))

    async def ask() -> dict[str, str] | Rejection | None:
        group = ask_for_group(profile.plugins[0], pod, cluster, Supervisor())
        if group is None:
            return None
        first = profile.plugins[0]
        async with tried(first, group, profile, pod, cluster, Supervisor()) as trial:
            names = {each.uid: each.name for each in (pod, *waiting)}
            placed = {names[uid]: node for uid, node in trial.nodes.items()}
            return placed or Rejection(trial.reason, unresolvable=False)

    return complete(started(plugin, ask))


def run_score(
    plugin: ScorePlugin,
    pod: Pod,
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> dict[str, float]:
    """Return each node's normalised score, 0..100; nothing if *plugin* skips *pod*.

    Takes and raises the same as `run_filter`.
    """
    __tracebackhide__ = True
    cluster = cluster_for(pod, nodes, pods, new_pods, read_by(plugin, objects))
    enabled, supervisor = enable(plugin)
    asking = partial(ask_for_scores, enabled, pod, cluster, supervisor)
    scores = complete(started(plugin, asking))
    return {} if scores is None else _by_name(cluster, scores.normalized)


def make_binding(
    pod: Pod,
    node: str,
    *,
    decision: DecisionSummary | None = None,
    cycle_state: Mapping[str, Any] | None = None,
    nodes: Nodes | None = None,
) -> Binding:
    """Make the decision to bind *pod* to the node called *node*.

    Args:
        pod: The pod.
        node: The node's name.
        decision: Why this node.
        cycle_state: What plugins kept for the bind, by key: `plugin.cycle_state.at(node)`.
        nodes: The snapshot, see `make_nodes`, for plugins that read it.
    """
    return Binding(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=node,
        profile=pod.spec.scheduler_name,
        decision=decision,
        cycle_state=dict(cycle_state or {}),
        known_pod=pod,
        known_nodes=None if nodes is None else lambda: nodes,
    )


def run_pre_bind(plugin: BindPlugin, binding: Binding) -> Refusal | None:
    """Return why *plugin* refuses *binding*, or None; `binding.annotations` has what it added.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly or took longer than its time budget.
        RuntimeError: It is called from a coroutine.
    """
    __tracebackhide__ = True
    enabled, supervisor = enable(plugin)
    return complete(started(plugin, partial(ask_before_bind, enabled, binding, supervisor)))


@asynccontextmanager
async def running(plugin: Plugin) -> AsyncIterator[None]:
    """Start *plugin*, stop it at the end of the block; its background work runs meanwhile.

    For async tests of a plugin with background work, and for several calls of one that keeps state:
    the functions of this module leave a plugin running that runs already.

        async with running(plugin):
            ...
            scores = await asyncio.to_thread(run_score, plugin, make_pod(), *nodes)
    """
    enabled = EnabledPlugin(plugin=plugin, time_budget=plugin.time_budget)
    await start_plugin(enabled)
    try:
        await asyncio.sleep(0)  # so that background work takes its first step
        yield
    finally:
        await stop_plugin(enabled)


async def started(plugin: Plugin, asking: Callable[[], Awaitable[T]]) -> T:
    """Return what *asking* returns while the plugin runs."""
    if plugin.is_running:
        return await asking()
    async with running(plugin):
        return await asking()


def run_permit(plugin: BindPlugin, binding: Binding, *others: Binding) -> Permission:
    """Return whether *plugin* allows *binding*, refuses it, or makes it wait.

    Of the *others*, those with the same key have come before it. Raises the same as `run_pre_bind`.
    """
    __tracebackhide__ = True
    enabled, supervisor = enable(plugin)

    async def ask() -> Permission:
        key = permit_key_of(enabled, binding, supervisor)
        before = [each for each in others if permit_key_of(enabled, each, supervisor) == key]
        arrived = (*before, binding) if key else (binding,)
        return await ask_to_permit(enabled, replace(binding, arrived=arrived), key, supervisor)

    return complete(started(plugin, ask))


async def verdicts(plugin: FilterPlugin, pod: Pod, cluster: Nodes) -> dict[str, Rejection | None]:
    """Return what `run_filter` returns."""
    enabled, supervisor = enable(plugin)
    given = await ask_for_verdicts(enabled, pod, cluster, supervisor)
    if given is None:
        return dict.fromkeys(cluster.names)
    reasons = (None, *given.reasons)
    return {name: reasons[c] for name, c in zip(cluster.names, given.codes, strict=True)}


async def raw_scores(plugin: ScorePlugin, pod: Pod, cluster: Nodes) -> dict[str, float]:
    """Return each node's score before normalisation; nothing if *plugin* skips *pod*."""
    enabled, supervisor = enable(plugin)
    scores = await ask_for_raw_scores(enabled, pod, cluster, cluster, supervisor)
    return {} if scores is None else _by_name(cluster, scores)


def _by_name(cluster: Nodes, scores: Scores) -> dict[str, float]:
    return dict(zip(cluster.names, scores.tolist(), strict=True))


def enable(plugin: Plugin) -> tuple[EnabledPlugin, Supervisor]:
    """Return what a service would ask *plugin* by."""
    enabled = EnabledPlugin(plugin=plugin, time_budget=plugin.time_budget)
    supervisor = Supervisor()
    supervisor.begin(enabled)
    return enabled, supervisor


def record_retries(plugin: FilterPlugin) -> list[str]:
    """Return a list that gets the reason of each call of `retry_rejected` from here on.

    Such as `retries = record_retries(plugin)`, and then `assert retries == ["it is cheaper now"]`.
    """
    reasons: list[str] = []
    plugin.report_retries(lambda _, reason, __: reasons.append(reason))
    return reasons
