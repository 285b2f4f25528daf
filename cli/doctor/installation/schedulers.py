"""Finds the kube-schedulers that ask Moorage, and reads their configuration."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from cli.doctor.installation.objects import NotReadError, ReadObjects
from cli.shared.gateway.pods import Object, name_of, scheduler_in, words_of
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import NEWEST, KubeSchedulerConfiguration, parse_configuration
from moorage_host.policy import read

KIND = re.compile(r'kind"?:\s*"?KubeSchedulerConfiguration')


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundScheduler:
    """A kube-scheduler that may ask Moorage.

    Attributes:
        source: Where its configuration is, for people.
        configuration: The configuration, as it runs if that may be read.
        pods: Its pods; none are known of a configuration file alone.
        written: What the source says, if it is known what runs.
    """

    source: str
    configuration: KubeSchedulerConfiguration | NotReadError
    pods: tuple[Object, ...] = ()
    written: KubeSchedulerConfiguration | NotReadError | None = None


def find_schedulers(
    objects: ReadObjects,
    given: Path | None,
    running: Mapping[str, KubeSchedulerConfiguration] = MappingProxyType({}),
) -> Sequence[FoundScheduler]:
    """Return the kube-schedulers with a configuration of their own.

    Args:
        objects: The cluster.
        given: A configuration on disk: that of kube-schedulers whose own is not in a ConfigMap.
        running: By pod, what kube-schedulers run with.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    pods = scheduler_pods(objects)
    maps = objects.lists["configmaps"]
    texts = [
        (each, key, text)
        for each in objects.read("configmaps")
        for key, text in (each.get("data") or {}).items()
        if KIND.search(text)
    ]
    on_disk = tuple(pod for pod in pods if not any(_mounts(pod, each) for each, _, _ in texts))
    found = []
    for each, key, text in texts:
        own = tuple(pod for pod in pods if _mounts(pod, each))
        if own or given is None:  # as in the layout control-plane, where it is to be copied
            note = "" if own else " (the file on nodes may differ: --config FILE)"
            source = f"ConfigMap {name_of(each)}, {key}{note}"
            pods_of = own or on_disk
            found.append(
                FoundScheduler(source=source, configuration=parsed(text, pods_of), pods=pods_of)
            )
    if given is not None:
        configuration = parsed(read(given), on_disk, str(given))
        found.append(FoundScheduler(source=str(given), configuration=configuration, pods=on_disk))
    elif on_disk and not any(each.pods is on_disk for each in found):
        names = ", ".join(name_of(pod) for pod in on_disk)
        reason = (
            f"the configuration of {names} is a file on its node: run this there with --config FILE"
        )
        missing = maps if isinstance(maps, NotReadError) else NotReadError(reason)
        found.append(FoundScheduler(source=names, configuration=missing, pods=on_disk))
    return [_as_it_runs(each, running) for each in found]


def _as_it_runs(
    found: FoundScheduler, running: Mapping[str, KubeSchedulerConfiguration]
) -> FoundScheduler:
    known = [name for name in map(name_of, found.pods) if name in running]
    if not known:
        return found
    source = f"/configz of {known[0]}"
    if isinstance(found.configuration, NotReadError) and found.source == known[0]:
        return replace(found, source=source, configuration=running[known[0]])
    return replace(found, configuration=running[known[0]], written=found.configuration)


def parsed(
    text: str, pods: Sequence[Object] = (), source: str = "line"
) -> KubeSchedulerConfiguration | NotReadError:
    """Return a configuration, or why the kube-scheduler in *pods* would not start with it."""
    images = [str((scheduler_in(pod) or {}).get("image")) for pod in pods]
    tags = map(_TAG.search, images)
    minor = next((int(tag[1]) for tag in tags if tag), NEWEST)
    try:
        return parse_configuration(text, source=source, minor=minor)
    except ConfigurationError as error:
        lines = "; ".join(str(error).splitlines())
        return NotReadError(f"kube-scheduler 1.{minor} would not start with it: {lines}")


_TAG = re.compile(r":v1\.([0-9]{1,4})")


def scheduler_pods(objects: ReadObjects) -> Sequence[Object]:
    """Return the pods of kube-schedulers that have a configuration."""
    return [
        pod
        for kind in ("pods", "pods of kube-system")
        for pod in objects.read(kind)
        if (container := scheduler_in(pod))
        and any(word.startswith("--config") for word in words_of(container))
    ]


def _mounts(pod: Object, config_map: Object) -> bool:
    """Whether a pod mounts a ConfigMap."""
    metadata, own = config_map["metadata"], pod["metadata"]["namespace"]
    names = [
        (own, (volume.get("configMap") or {}).get("name"))
        for volume in pod["spec"].get("volumes") or ()
    ]
    return (metadata["namespace"], metadata["name"]) in names
