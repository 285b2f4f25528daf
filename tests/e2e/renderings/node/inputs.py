"""What a container is given: its environment and command line, and the files of its volumes.

What is in them comes from the API server, as a kubelet writes it.
"""

import base64
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.e2e.renderings.node.api import Api, MissingError
from tools.planes.embedded import Object

TOKEN_SECONDS = 3600


class Volumes:
    """Writes the volumes of one pod into a folder."""

    def __init__(self, api: Api, pod: Object, folder: Path) -> None:
        self._api = api
        self._pod = pod
        self._namespace = pod["metadata"]["namespace"]
        self._folder = folder
        self._group: int | None = pod["spec"].get("securityContext", {}).get("fsGroup")

    async def write(self) -> dict[str, Path]:
        """Write all; return the path of each volume by its name.

        Raises:
            MissingError: An object that a volume names does not exist, or has no such key.
        """
        made = {}
        for volume in self._pod["spec"].get("volumes") or ():
            name = volume["name"]
            try:
                made[name] = await self._volume(volume, self._folder / name)
            except MissingError as error:
                raise MissingError(f'volume "{name}" cannot be mounted: {error}') from error
        return made

    async def _volume(self, volume: Object, path: Path) -> Path:
        if "hostPath" in volume:
            return self._host_path(volume["hostPath"])
        _make(path)
        if "emptyDir" in volume:
            return path
        if "projected" in volume:
            mode = volume["projected"].get("defaultMode", 0o644)
            for source in volume["projected"]["sources"]:
                self._write(path, *await self._source(source, mode))
            return path
        self._write(path, *await self._source(volume, 0o644))
        return path

    async def _source(self, source: Object, mode: int) -> tuple[Mapping[str, bytes], int]:
        if secret := source.get("secret"):
            return await self._keys("secrets", secret, secret.get("secretName"), mode)
        if config := source.get("configMap"):
            return await self._keys("configmaps", config, config.get("name"), mode)
        if token := source.get("serviceAccountToken"):
            account = self._pod["spec"]["serviceAccountName"]
            seconds = token.get("expirationSeconds", TOKEN_SECONDS)
            value = await self._api.token(account, self._pod, seconds, token.get("audience"))
            return {token["path"]: value.encode()}, mode
        if fields := source.get("downwardAPI"):
            wanted = {item["path"]: item["fieldRef"]["fieldPath"] for item in fields["items"]}
            return {path: field(self._pod, at).encode() for path, at in wanted.items()}, mode
        raise NotImplementedError(f"a volume of an unknown kind: {source}")

    async def _keys(
        self, resource: str, source: Object, name: str | None, mode: int
    ) -> tuple[Mapping[str, bytes], int]:
        mode = source.get("defaultMode", mode)
        obj = await self._api.find(resource, self._namespace, str(name))
        if obj is None:
            if source.get("optional"):
                return {}, mode
            raise MissingError(f'{resource[:-1]} "{name}" not found')
        content = data_of(obj)
        if items := source.get("items"):
            if absent := [item["key"] for item in items if item["key"] not in content]:
                raise MissingError(f"{resource[:-1]} {name} has no key {absent[0]}")
            content = {item["path"]: content[item["key"]] for item in items}
        return content, mode

    def _write(self, folder: Path, content: Mapping[str, bytes], mode: int) -> None:
        for name, value in content.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(value)
            if self._group is not None:
                os.chown(file, 0, self._group)
                mode |= 0o440
            file.chmod(mode)

    def _host_path(self, source: Object) -> Path:
        """Return the file of the stand-in's own host: beside that of all pods."""
        path: Path = self._api.host / source["path"].lstrip("/")
        if not path.exists():
            if source.get("type") != "DirectoryOrCreate":
                raise MissingError(f"hostPath {source['path']} does not exist")
            path.mkdir(parents=True)
        return path


def _make(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)  # read-only where it is mounted, but for an emptyDir


def data_of(obj: Object) -> dict[str, bytes]:
    """Return the content of a Secret or a ConfigMap."""
    if obj["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    return {key: value.encode() for key, value in (obj.get("data") or {}).items()}


def field(pod: Object, path: str) -> str:
    """Return a field of a pod that the downward API offers."""
    if path.startswith(("metadata.labels['", "metadata.annotations['")):
        at, _, key = path.partition("['")
        return str(pod["metadata"].get(at.rpartition(".")[2], {}).get(key.removesuffix("']"), ""))
    found = pod
    for part in path.split("."):
        found = found[part]
    return str(found)


RESOURCES = {"configMapRef": "configmaps", "secretRef": "secrets"}
KEYS = {"configMapKeyRef": "configmaps", "secretKeyRef": "secrets"}


async def environment(
    api: Api, pod: Object, container: Object, services: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container.

    Args:
        api: Where ConfigMaps and Secrets are.
        pod: The pod, with status.podIP.
        container: The container.
        services: The variables of Services.

    Raises:
        MissingError: A ConfigMap, a Secret or a key does not exist.
    """
    made = dict(services)
    for source in container.get("envFrom") or ():
        for kind in RESOURCES.keys() & source.keys():
            made |= await _all_keys(api, pod, source, kind)
    for variable in container.get("env") or ():
        if "valueFrom" not in variable:
            made[variable["name"]] = expand(variable.get("value", ""), made)
        elif (value := await _from(api, pod, variable["valueFrom"])) is not None:
            made[variable["name"]] = value
    return made


def command(container: Object, variables: Mapping[str, str]) -> list[str]:
    """Return the command and the arguments; images of ours have no entry point to fall back on.

    Raises:
        MissingError: The container has no command.
    """
    if not container.get("command"):
        raise MissingError(f"container {container['name']} has no command")
    words = [*container["command"], *(container.get("args") or ())]
    return [expand(word, variables) for word in words]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME); $$ is a dollar, and names that are unknown stay as they are."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([\w.-]+)\)", value, text)


def service_links(services: Iterable[Object], namespace: str, *, wanted: bool) -> dict[str, str]:
    """Return the variables of the API server's Service and, if wanted, of those beside the pod."""
    made = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        own = metadata["namespace"] == namespace and wanted
        kubernetes = (metadata["namespace"], metadata["name"]) == ("default", "kubernetes")
        if spec["clusterIP"] != "None" and (own or kubernetes):
            name = metadata["name"].upper().replace("-", "_")
            made[f"{name}_SERVICE_HOST"] = spec["clusterIP"]
            made[f"{name}_SERVICE_PORT"] = str(spec["ports"][0]["port"])
    return made


async def _all_keys(api: Api, pod: Object, source: Object, kind: str) -> dict[str, str]:
    reference = source[kind]
    obj = await api.find(RESOURCES[kind], pod["metadata"]["namespace"], reference["name"])
    if obj is None:
        if reference.get("optional"):
            return {}
        raise MissingError(f'{RESOURCES[kind][:-1]} "{reference["name"]}" not found')
    prefix = source.get("prefix", "")
    return {f"{prefix}{key}": value.decode() for key, value in data_of(obj).items()}


async def _from(api: Api, pod: Object, source: Object) -> str | None:
    if reference := source.get("fieldRef"):
        return field(pod, reference["fieldPath"])
    for kind in KEYS.keys() & source.keys():
        reference = source[kind]
        obj = await api.find(KEYS[kind], pod["metadata"]["namespace"], reference["name"])
        content = data_of(obj) if obj else {}
        if reference["key"] in content:
            return content[reference["key"]].decode()
        if reference.get("optional"):
            return None
        raise MissingError(f"{KEYS[kind][:-1]} {reference['name']} has no key {reference['key']}")
    raise NotImplementedError(f"a variable from {source}")
