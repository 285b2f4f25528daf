"""A copy of the cluster to schedule in: what the stand-in for kube-scheduler knows of one."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from cli.up.objects.manifests import Object
from cli.whatif.simulate.pods import FINISHED, key_of, readable, uid_of
from cli.whatif.simulate.sources import ClusterObjects
from moorage.errors import ConfigurationError
from moorage.models import ObjectName
from moorage.snapshot.placements import time_from_creation
from sandbox.scheduler.cluster.cache import Cache, KnownPod


def copy_of(cluster: ClusterObjects, moved: frozenset[str]) -> Cache:
    """Return a copy without the pods that are *moved* (NAMESPACE/NAME).

    Raises:
        ConfigurationError: A node or a pod is malformed; the message names the place.
    """
    cache = Cache()
    for where, node in cluster.nodes:
        _add_node(cache, where, node)
    for where, pod in cluster.pods:
        if key_of(pod) not in moved and (pod.get("status") or {}).get("phase") not in FINISHED:
            _add_pod(cache, where, pod)
    objects = cache.snapshot.objects
    objects.open(cluster.further)
    for kind, items in cluster.further.items():
        for item in items:
            metadata = item["metadata"]
            name = ObjectName(kind, metadata.get("namespace", ""), metadata.get("name", ""))
            objects.put(name, msgspec.json.encode(item))
    return cache


def left_out(cluster: ClusterObjects, moved: frozenset[str]) -> Iterator[str]:
    """Yield which pods of a cluster the copy does not count on any node, and why."""
    names = {node["metadata"].get("name") for _, node in cluster.nodes}
    pods = [pod for _, pod in cluster.pods if key_of(pod) not in moved]
    places = Counter[str]()
    for pod in pods:
        place = (pod.get("spec") or {}).get("nodeName")
        if (pod.get("status") or {}).get("phase") in FINISHED:
            continue
        if not place:
            places["have no node, and are not among --pods"] += 1
        elif place not in names:
            places["are on nodes that are not there"] += 1
    yield from (f"pods of {cluster.place} that {why}: {count}" for why, count in places.items())
    if again := sum(key_of(pod) in moved for _, pod in cluster.pods):
        yield f"pods of {cluster.place} that are taken off their nodes and placed again: {again}"


def _add_node(cache: Cache, where: str, node: Object) -> None:
    name = node["metadata"].get("name")
    if name in cache.nodes:
        raise ConfigurationError(f"{where}: node {name} is there twice")
    try:
        cache.set_node(node)
    except (msgspec.DecodeError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(f"{where}: node {name}: {error}") from error


def _add_pod(cache: Cache, where: str, pod: Object) -> None:
    given = readable(pod, where)
    given["metadata"]["uid"] = uid_of(given)
    known = KnownPod(given)
    if known.uid in cache.pods:
        raise ConfigurationError(f"{where}: pod {known.key} is there twice")
    try:
        cache.set_pod(known)
        node = cache.nodes.get(known.pod.spec.node_name)
        if node is not None:  # it has long been there, which plugins that measure load look at
            since = time_from_creation(known.pod, cache.snapshot.placements.now())
            cache.snapshot.place_pod(node.row, known.pod, since=since)
    except ValueError as error:
        raise ConfigurationError(f"{where}: pod {known.key}: {error}") from error
