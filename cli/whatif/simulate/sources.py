"""What a cluster consists of: read from a dump, or from an API server."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.up.objects.manifests import Object, read_located
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind
from moorage.rules import selects_object
from moorage_host.kube import KubeError, connect
from moorage_host.kube.client import KubeClient
from sandbox.apiserver.resources.builtin import BUILT_IN

READ_SECONDS: Final = 30.0
"""How long the API server may take for one answer."""

PAGE_SIZE: Final = 500
"""Objects in one answer."""

PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
NOT_FOUND: Final = 404

Located = tuple[str, Object]
"""An object, and its place for messages."""

Readers = Mapping[ObjectKind, str]
"""The further kinds of objects that plugins read, each with the name of such a plugin."""

_PLURALS: Final = {resource.kind: resource.plural for resource in BUILT_IN}


@dataclass(slots=True, kw_only=True)
class ClusterObjects:
    """The objects of a cluster.

    Attributes:
        place: Where they come from.
        classes: The PriorityClasses.
        further: What plugins read beside nodes and pods, by kind.
        notes: What people should know about how they were read.
    """

    place: str
    nodes: list[Located] = field(default_factory=list)
    pods: list[Located] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    further: dict[ObjectKind, list[Object]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_dump(path: Path, readers: Readers) -> ClusterObjects:
    """Read what `kubectl get nodes,pods -A -o json` or `-o yaml` prints.

    Raises:
        ConfigurationError: It cannot be read, or has no nodes; the message names the place.
    """
    located = list(read_located(path))
    found = ClusterObjects(place=str(path), further={kind: [] for kind in readers})
    plurals = {**_PLURALS, **dict(_custom(obj for _, obj in located))}
    for where, obj in located:
        match obj["kind"]:
            case "Node":
                found.nodes.append((where, obj))
            case "Pod":
                found.pods.append((where, obj))
            case "PriorityClass":
                found.classes.append(obj)
        plural = plurals.get(obj["kind"]) or f"{obj['kind'].lower()}s"
        for kind in readers:
            if (kind.api_version, kind.plural) == (obj.get("apiVersion"), plural):
                found.further[kind] += [obj] if selects_object(kind, obj) else []
    if not found.nodes:
        raise ConfigurationError(
            f"{path}: there is no node in it: write it with "
            f"`kubectl get {','.join(('nodes', 'pods', *_names(readers)))} -A -o json`"
        )
    found.notes += _missing(found, readers)
    return found


async def read_cluster(kubeconfig: Path, readers: Readers) -> ClusterObjects:
    """Read the same from the API server of a kubeconfig; nothing is written there.

    Raises:
        ConfigurationError: It cannot be reached, or does not let the user read.
    """
    client = await connect(kubeconfig)
    found = ClusterObjects(place=client.host)
    try:
        found.nodes = [*_located(await _read(client, "/api/v1/nodes", {}), "Node")]
        found.pods = [*_located(await _read(client, "/api/v1/pods", {}), "Pod")]
        found.classes = await _read(client, PRIORITY_CLASSES, {})
        for kind in readers:
            found.further[kind] = await _read(client, kind.path, kind.query, kind.optional)
    except (KubeError, TimeoutError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"cannot read the cluster: {error}") from error
    finally:
        await client.close()
    if not found.nodes:
        raise ConfigurationError(f"the cluster at {client.host} has no nodes")
    return found


async def _read(
    client: KubeClient, path: str, query: Mapping[str, str], optional: bool = False
) -> list[Object]:
    items: list[Object] = []
    page = {"limit": str(PAGE_SIZE), **query}
    while True:
        answer = await client.request("GET", path, query=page, timeout=READ_SECONDS)
        if optional and answer.status == NOT_FOUND:
            return []
        content: Any = msgspec.json.decode(answer.check().body)
        items += content.get("items") or ()
        following = (content.get("metadata") or {}).get("continue")
        if not following:
            return items
        page["continue"] = following


def _located(items: Iterable[Object], kind: str) -> Iterator[Located]:
    for item in items:
        metadata = item["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        yield f"{kind} {name}", item


def _custom(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Yield kind and plural of the custom resources that a dump defines."""
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            names = (obj.get("spec") or {}).get("names") or {}
            yield str(names.get("kind")), str(names.get("plural"))


def _missing(found: ClusterObjects, readers: Readers) -> Iterator[str]:
    for kind, plugin in readers.items():
        if not found.further[kind] and not kind.optional:
            yield (
                f"{plugin} reads {kind}, of which {found.place} has none; a dump with them: "
                f"kubectl get {','.join(('nodes', 'pods', *_names(readers)))} -A -o json"
            )


def _names(readers: Readers) -> list[str]:
    return list(dict.fromkeys(re.sub(r"\[.*", "", str(kind)) for kind in readers))
