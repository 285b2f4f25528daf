"""What the release has: the objects of a layout's install.yaml, beside those in the cluster."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cli.doctor.command import INSTALL
from cli.doctor.installation.objects import AT_ONCE, NotReadError, ReadObjects, get
from cli.shared.gateway.pods import Object, containers_of, words_of
from moorage_host.kube import KubeClient

NAMESPACE = "moorage"
"""The namespace in them."""

CONTROL_PLANE = "control-plane"

_NAMESPACE = re.compile(r"(?i)(namespace: |-namespace=|gateway\.)moorage(?![\w-])")

CHOSEN = frozenset(
    (
        "affinity",
        "annotations",
        "clusterIP",
        "image",
        "imagePullPolicy",
        "nodeSelector",
        "priorityClassName",
        "replicas",
        "resources",
        "strategy",
        "tolerations",
        "topologySpreadConstraints",
    )
)
"""Fields that users choose, which no comparison reports."""

CONTENT_OF_USERS = ("policy", "kube-scheduler", CONTROL_PLANE)
"""ConfigMaps that users replace."""


@dataclass(frozen=True, slots=True)
class Release:
    """A layout of the release: each of its objects, and the cluster's one, None if it has none."""

    layout: str
    pairs: Sequence[tuple[Object, Object | NotReadError | None]]


def rendered(layout: str, namespace: str) -> list[Object]:
    """Return the objects of a layout, in a namespace."""
    text = (INSTALL / f"{layout}.yaml").read_text(encoding="utf-8")
    objects = yaml.safe_load_all(_NAMESPACE.sub(rf"\g<1>{namespace}", text))
    return [each for each in objects if each["kind"] != "Namespace" or namespace == NAMESPACE]


def likely_layout(objects: ReadObjects) -> str:
    """Return the layout that an installation has, by what distinguishes them.

    Raises:
        NotReadError: The Deployments or ConfigMaps could not be read.
    """
    control_plane = objects.named("configmaps", CONTROL_PLANE)
    if control_plane is not None:
        is_strict = "plain-scheduler.yaml" in (control_plane.get("data") or {})
        return f"{CONTROL_PLANE}-strict" if is_strict else CONTROL_PLANE
    for deployment in objects.of("deployments"):
        template = deployment["spec"]["template"]
        words = [word for each in containers_of(template) for word in words_of(each)]
        if "gateway" in words and "kube-scheduler" in words:
            return "sidecar"
        if "--leader-election=lease" in words:
            return "high-availability"
    return "second-scheduler"


async def read_release(
    client: KubeClient, objects: ReadObjects, namespace: str, layout: str
) -> Release | NotReadError:
    """Read what the cluster has of each object of a layout; "" is the one that is likely."""
    try:
        layout = layout or likely_layout(objects)
    except NotReadError as error:
        return error
    wanted = rendered(layout, namespace)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(obj: Object) -> Object | NotReadError | None:
        async with gate:
            answer = await get(client, path_of(obj))
        return None if isinstance(answer, NotReadError) and answer.is_absent else answer

    found = await asyncio.gather(*map(one, wanted))
    return Release(layout, list(zip(wanted, found, strict=True)))


def path_of(obj: Object) -> str:
    """Return the path of an object at the API server."""
    version, metadata, plural = obj["apiVersion"], obj["metadata"], obj["kind"].lower()
    plural = f"{plural[:-1]}ies" if plural.endswith("y") else f"{plural}s"
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{plural}/{metadata['name']}"


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield in words what a live object has not as the release has it.

    What is only in the live object does not count: defaults, and what users and controllers add.
    """
    if wanted in ({}, [], "", None, False, 0) and not found:
        return
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key, value in wanted.items():
            if key not in CHOSEN:
                yield from differences(value, found.get(key), f"{path}.{key}" if path else key)
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _of_items(wanted, found, path)
    elif found is None:
        yield f"{path} is not set, but {_short(wanted)} in the release"
    elif wanted != found:
        yield f"{path} is {_short(found)}, but {_short(wanted)} in the release"


def _of_items(wanted: Sequence[Any], found: Sequence[Any], path: str) -> Iterator[str]:
    for item in wanted:
        name = item.get("name") if isinstance(item, Mapping) else None
        if name is not None:
            same = next((f for f in found if f.get("name") == name), None)
            yield from differences(item, same, f"{path}[{name}]")
        elif not any(not list(differences(item, each)) for each in found):
            yield f"{path} lacks {_short(item)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True)
    text = " ".join(text.removesuffix("...\n").split())
    return f"{text[:80]} ..." if len(text) > 80 else text
