"""Volumes of pods as files, as a kubelet writes them: what is in them comes from the API server."""

import base64
import os
from collections.abc import Mapping
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
