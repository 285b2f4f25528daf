"""Checks on an author's example that a plugin depends on no more than it declares.

Authors import this from `moorage.testing`:

    def test_other_nodes_do_not_matter() -> None:
        hot = make_node("hot", annotations={"example.com/temperature": "90"})
        assert_node_local(MaxTemperature(), make_pod(), hot, make_node("cold"))
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from moorage.models import (
    Affinity,
    AwsDiskSource,
    ClaimSource,
    Container,
    ContainerPort,
    GceDiskSource,
    ImageSource,
    IscsiSource,
    LabelSelector,
    Metadata,
    NodeAffinitySpec,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    RbdSource,
    Requirement,
    Resources,
    SchedulingGate,
    SchedulingGroup,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from moorage.plugin.hooks import FilterPlugin, ScorePlugin
from moorage.plugin.pod_fields import SIGNATURE, alike
from moorage.plugin.values import Scope
from moorage.snapshot import Nodes
from moorage.testing.given import NO_OBJECTS, GivenObjects, read_by
from moorage.testing.harness import cluster_for, complete, raw_scores, started, verdicts

_TEXTS: Final = {"example.com/unlike": "yes"}
_EVERYWHERE: Final = Toleration(operator="Exists")
_AMOUNTS: Final = Resources(
    requests={"cpu": "777m", "memory": "7Gi"}, limits={"cpu": "7777m", "memory": "77Gi"}
)
_PORTS: Final = (ContainerPort(container_port=80, host_port=80),)
_MAIN: Final = Container(
    name="unlike", image="example.com/unlike:7", resources=_AMOUNTS, ports=_PORTS
)
_SIDECAR: Final = Container(
    name="beside",
    image="example.com/beside:7",
    resources=_AMOUNTS,
    ports=(ContainerPort(container_port=443, host_port=443),),
    restart_policy="Always",
)
_NOWHERE: Final = NodeSelectorTerm(
    match_expressions=(Requirement(key="unlike", operator="Exists"),)
)
_SELF: Final = PodAffinityTerm(
    label_selector=LabelSelector(match_labels=_TEXTS), topology_key="kubernetes.io/hostname"
)
_NEAR: Final = PodAffinity(
    required=(_SELF,), preferred=(WeightedPodAffinityTerm(weight=7, pod_affinity_term=_SELF),)
)
_AFFINITY: Final = Affinity(
    node_affinity=NodeAffinitySpec(
        required=NodeSelector(node_selector_terms=(_NOWHERE,)),
        preferred=(PreferredSchedulingTerm(weight=7, preference=_NOWHERE),),
    ),
    pod_affinity=_NEAR,
    pod_anti_affinity=_NEAR,
)
_VOLUMES: Final = (
    Volume(name="claim", persistent_volume_claim=ClaimSource(claim_name="unlike")),
    Volume(name="image", image=ImageSource(reference="example.com/unlike:7")),
    Volume(name="gce", gce_persistent_disk=GceDiskSource(pd_name="unlike")),
    Volume(name="aws", aws_elastic_block_store=AwsDiskSource(volume_id="unlike")),
    Volume(name="iscsi", iscsi=IscsiSource(iqn="unlike")),
    Volume(name="rbd", rbd=RbdSource(monitors=("unlike",), image="unlike")),
)
_SPREAD: Final = TopologySpreadConstraint(
    max_skew=7, topology_key="kubernetes.io/hostname", label_selector=LabelSelector()
)

FULLY_SPECIFIED_POD: Final = Pod(
    metadata=Metadata(
        namespace="unlike",
        labels=_TEXTS,
        annotations=_TEXTS,
        owner_references=(OwnerReference(kind="StatefulSet", name="unlike", controller=True),),
    ),
    spec=PodSpec(
        node_name="unlike",
        scheduler_name="unlike",
        priority=7,
        priority_class_name="unlike",
        preemption_policy="Never",
        host_network=True,
        containers=(_MAIN,),
        init_containers=(_SIDECAR,),
        resources=_AMOUNTS,
        overhead={"cpu": "77m", "memory": "77Mi"},
        node_selector=_TEXTS,
        affinity=_AFFINITY,
        tolerations=(_EVERYWHERE,),
        topology_spread_constraints=(_SPREAD,),
        scheduling_gates=(SchedulingGate(name="example.com/unlike"),),
        scheduling_group=SchedulingGroup(pod_group_name="unlike"),
        volumes=_VOLUMES,
    ),
)
"""A pod with a value in every field."""


def unlike_pods() -> Iterator[Pod]:
    """Yield two pods, so that any pod differs from one of them in each field."""
    yield FULLY_SPECIFIED_POD
    yield Pod(metadata=Metadata(namespace="empty"))


ELSEWHERE = "for a pod that differs only outside of its pod_fields"

Answers = Mapping[tuple[str, str], object]
"""The verdicts and raw scores of the plugin, by "verdict" or "score" and the name of the node."""


def assert_node_local(
    plugin: FilterPlugin | ScorePlugin,
    pod: Pod,
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
    unlike: Iterable[Pod] = (),
) -> None:
    """Assert that *plugin* depends on no more than the `Scope.NODE` or `MANIFESTS` it declares.

    On this example, its verdict or raw score of each node must be the same without the other nodes
    (`Scope.NODE`), or without the pods on them (`Scope.MANIFESTS`); if the pods on the node came
    just now; and for equal pods: one with another name, uid, status and time of creation, and some
    that differ in all fields but its `pod_fields`.

    Args:
        plugin: The plugin.
        pod: The pod to place.
        nodes: All nodes of the cluster; the more they differ, the more is checked.
        pods: The other pods, on their nodes.
        objects: Manifests of the additional kinds that the plugin reads.
        unlike: More pods from which all fields but the plugin's `pod_fields` are taken.

    Raises:
        AssertionError: It declares a wider scope, or does not answer the same. The message names a
            node and both answers.
        PluginFailedError: The plugin raised, answered wrongly or took longer than its time budget.
        ValueError: The example cannot be, see `run_filter`.
        RuntimeError: It is called from a coroutine.
    """
    if plugin.depends_on > Scope.MANIFESTS:
        raise AssertionError(
            f"the class of {plugin.name} does not itself declare depends_on = Scope.NODE or "
            f"Scope.MANIFESTS, so it depends on Scope.{plugin.depends_on.name}"
        )
    given = read_by(plugin, objects)
    all_unlike = (*unlike_pods(), *unlike)
    comparing = partial(_compare, plugin, pod, nodes, tuple(pods), given, all_unlike)
    complete(started(plugin, comparing))


async def _compare(
    plugin: FilterPlugin | ScorePlugin,
    pod: Pod,
    nodes: tuple[NodeManifest, ...],
    pods: tuple[Pod, ...],
    objects: GivenObjects,
    unlike: Iterable[Pod],
) -> None:
    cluster = cluster_for(pod, nodes, pods, objects=objects)
    same = [
        ("for an equal pod of another name", _equal(pod, pod), cluster),
        ("if the pods on it came just now", pod, cluster_for(pod, nodes, (), pods, objects)),
    ]
    if plugin.pod_fields is not None:
        same += [(ELSEWHERE, equal, cluster) for equal in equal_pods(plugin, pod, unlike)]
    expected = await _ask(plugin, pod, cluster)
    for condition, asked, some in same:
        _check(plugin, condition, expected, await _ask(plugin, asked, some))
    for node in nodes:
        there = [each for each in pods if each.spec.node_name == node.name]
        of_others = plugin.depends_on is Scope.MANIFESTS
        condition = f"if the other nodes {'have no pods' if of_others else 'are not there'}"
        alone = cluster_for(pod, nodes if of_others else [node], there, objects=objects)
        answers = await _ask(plugin, pod, alone)
        of_it = {key: answer for key, answer in answers.items() if key[1] == node.name}
        _check(plugin, condition, expected, of_it)


def _check(
    plugin: FilterPlugin | ScorePlugin, condition: str, expected: Answers, again: Answers
) -> None:
    for (what, name), answer in again.items():
        if answer != expected[what, name]:
            raise AssertionError(
                f"{plugin.name} depends on more than Scope.{plugin.depends_on.name}: "
                f"its {what} of node {name} is "
                f"{expected[what, name]}, but {answer} {condition}"
            )


async def _ask(plugin: FilterPlugin | ScorePlugin, pod: Pod, cluster: Nodes) -> Answers:
    answers: dict[tuple[str, str], object] = {}
    if isinstance(plugin, FilterPlugin):
        for name, verdict in (await verdicts(plugin, pod, cluster)).items():
            answers["verdict", name] = verdict
    if isinstance(plugin, ScorePlugin):
        scores = await raw_scores(plugin, pod, cluster)
        for name in cluster.names:
            answers["score", name] = scores.get(name, "nothing")
    return answers


def equal_pods(
    plugin: FilterPlugin | ScorePlugin, pod: Pod, unlike: Iterable[Pod]
) -> Iterator[Pod]:
    """Yield pods that are equal to *pod* for *plugin*, and otherwise like those of *unlike*."""
    for other in unlike:
        fields = SIGNATURE if plugin.pod_fields is None else plugin.pod_fields
        yield _equal(pod, alike(pod, other, fields))


def _equal(pod: Pod, other: Pod) -> Pod:
    metadata = replace(
        other.metadata,
        name=f"{pod.name}-equal",
        uid=f"{pod.uid}-equal",
        creation_timestamp="2001-01-01T00:00:00Z",
    )
    return replace(
        other, metadata=metadata, status=PodStatus(phase="Pending", nominated_node_name="another")
    )
