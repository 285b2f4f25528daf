"""Finds the kube-schedulers that ask Moorage, and reads their configuration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from cli.doctor.installation.objects import Missing, NotReadError, Object, Objects
from cli.doctor.installation.pods import name_of, scheduler_in, words_of
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import Configuration, parse_configuration

LAYOUT = "control-plane"
"""The ConfigMap with files for nodes of the control plane, where kube-scheduler is a static pod."""

CONFIGURATION = "-config.yaml"
"""How the names of configurations in it end."""

INLINE = "(inline)"
"""Stands for a file whose content the configuration has itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A kube-scheduler that may ask Moorage.

    Attributes:
        source: Where its configuration is, for people.
        configuration: The configuration.
        pods: Its pods; none are known of a configuration file alone.
    """

    source: str
    configuration: Configuration | Missing
    pods: tuple[Object, ...] = ()


def find_schedulers(objects: Objects, given: Path | None) -> Sequence[Scheduler]:
    """Return the kube-schedulers with a configuration of their own.

    Args:
        objects: The cluster.
        given: A configuration on disk: that of kube-schedulers whose own is not in a ConfigMap.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    found: dict[str, list[Object]] = {}
    on_disk: list[Object] = []
    for pod in _scheduler_pods(objects):
        container = scheduler_in(pod)
        path = _config_path(container) if container else None
        if container is None or path is None:
            continue
        volume = _volume(pod, container, path)
        if volume is not None and volume.get("configMap"):
            found.setdefault(_key(volume, path), []).append(pod)
        else:
            on_disk.append(pod)
    schedulers = [_from_config_map(objects, key, tuple(pods)) for key, pods in found.items()]
    if given is not None:
        configuration = _read(given)
        schedulers.append(
            Scheduler(source=str(given), configuration=configuration, pods=tuple(on_disk))
        )
    elif layout := list(_of_layout(objects, tuple(on_disk))):
        schedulers += layout
    elif on_disk:
        names = ", ".join(name_of(pod) for pod in on_disk)
        reason = (
            f"the configuration of {names} is a file on its node: run this there with --config FILE"
        )
        schedulers.append(
            Scheduler(source=names, configuration=Missing(reason), pods=tuple(on_disk))
        )
    return schedulers


def parsed(text: str) -> Configuration | Missing:
    """Return a configuration, or why kube-scheduler would not start with it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        document = None
    if isinstance(document, dict) and _has_inline(document):
        text = yaml.safe_dump(document)
    try:
        return parse_configuration(text)
    except ConfigurationError as error:
        return Missing(f"kube-scheduler would not start with it: {error}")


def _of_layout(objects: Objects, pods: tuple[Object, ...]) -> Iterator[Scheduler]:
    """Yield what the ConfigMap has that is to be copied to nodes of the control plane."""
    try:
        found = objects.named("configmaps", LAYOUT)
    except NotReadError:
        return
    for key, text in ((found or {}).get("data") or {}).items():
        if key.endswith(CONFIGURATION):
            yield Scheduler(
                source=f"ConfigMap {LAYOUT}, {key} (the file on nodes may differ: --config FILE)",
                configuration=parsed(text),
                pods=pods,
            )


def _scheduler_pods(objects: Objects) -> Iterator[Object]:
    for kind in ("pods", "pods of kube-system"):
        try:
            yield from (pod for pod in objects.of(kind) if scheduler_in(pod) is not None)
        except NotReadError:
            continue


def _config_path(container: Object) -> str | None:
    words = words_of(container)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--config="):
            return word.partition("=")[2]
        if word == "--config":
            return str(following)
    return None


def _volume(pod: Object, container: Object, path: str) -> Object | None:
    """Return the volume that has a path."""
    mounts = {
        each["mountPath"].rstrip("/"): each["name"] for each in container.get("volumeMounts") or ()
    }
    parents = [path, *map(str, PurePosixPath(path).parents)]
    name = next((mounts[parent] for parent in parents if parent in mounts), None)
    volumes = pod["spec"].get("volumes") or ()
    return next((each for each in volumes if each["name"] == name), None)


def _key(volume: Object, path: str) -> str:
    """Return "NAME KEY" of the content of a ConfigMap that is mounted at a path."""
    file = PurePosixPath(path).name
    items = volume["configMap"].get("items") or ()
    key = next((each["key"] for each in items if each.get("path") == file), file)
    return f"{volume['configMap'].get('name', '')} {key}"


def _from_config_map(objects: Objects, key: str, pods: tuple[Object, ...]) -> Scheduler:
    name, _, entry = key.partition(" ")
    source = f"ConfigMap {pods[0]['metadata']['namespace']}/{name}, {entry}"
    return Scheduler(source=source, configuration=_of_map(objects, name, entry), pods=pods)


def _of_map(objects: Objects, name: str, entry: str) -> Configuration | Missing:
    try:
        found = objects.named("configmaps", name)
    except NotReadError as error:
        return Missing(str(error))
    if found is None:
        return Missing(f"there is no ConfigMap {name}, which kube-scheduler mounts")
    text = (found.get("data") or {}).get(entry)
    if text is None:
        return Missing(f"ConfigMap {name} has no {entry}, which is kube-scheduler's --config")
    return parsed(text)


def _read(path: Path) -> Configuration | Missing:
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the --config {path}: {error}") from error


def _has_inline(document: dict[str, Any]) -> bool:
    """Replace certificates in a configuration by the names of files; return whether there were."""
    replaced = False
    for extender in document.get("extenders") or ():
        tls = extender.get("tlsConfig") if isinstance(extender, dict) else None
        if not isinstance(tls, dict):
            continue
        for field in ("ca", "cert", "key"):
            if tls.pop(f"{field}Data", None):
                tls[f"{field}File"] = INLINE
                replaced = True
    return replaced
