"""A real control plane for one rendering, in a network of its own."""

import asyncio
import ctypes
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

from moorage_host.kube import KubeClient, Response, connect
from tools.build import find
from tools.planes.embedded import Object
from tools.planes.objects import node
from tools.planes.real import RealPlane

HERE = Path(__file__).parent
NODES = ("node-1", "node-2")
SERVICES = "10.96.0.0/16"
"""The addresses of Services: the beginning of kubeadm's default."""

# The plugin ServiceAccount gives pods the volume with their token, as everywhere.
ADMISSION = "TaintNodesByCondition,StorageObjectInUseProtection"
TYPES = {"PATCH": "application/merge-patch+json"}

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_NETWORK = 0x40000000


class KubectlError(Exception):
    """kubectl failed; the message is what it printed."""


class MissingError(Exception):
    """Something that a pod names does not exist; the message says what."""


@contextmanager
def own_network() -> Iterator[None]:
    """Be in a new network namespace, with all that is started in the block.

    Each address that begins with 10 leads to this machine there, and nothing of it is in the way.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        assert _libc.unshare(_NEW_NETWORK) == 0, "it needs root"
        for words in ("link set lo up", "route add local 10.0.0.0/8 dev lo"):
            subprocess.run(["ip", *words.split()], check=True, timeout=60)
        yield
    finally:
        assert _libc.setns(before, _NEW_NETWORK) == 0
        os.close(before)


class Cluster:
    """One control plane, with all rights on it.

    Attributes:
        plane: The control plane.
        directory: Where everything is written.
        host: The folder that stands for the root of nodes, for hostPath volumes.
    """

    def __init__(self, plane: RealPlane, client: KubeClient) -> None:
        self.plane = plane
        self.directory = plane.directory
        self.host = plane.directory / "host"
        self._client = client

    @classmethod
    @asynccontextmanager
    async def started(cls, directory: Path) -> AsyncIterator[Self]:
        """Start everything but pods; stop everything in the end."""
        options = {
            "service-cluster-ip-range": SERVICES,
            "disable-admission-plugins": ADMISSION,
            "advertise-address": "10.0.0.1",
        }
        with own_network():
            # Without lists that come as watches, both verbs are used, as on servers before 1.34.
            plane = RealPlane(directory, "WatchList=false", deployed=False, options=options)
            async with AsyncExitStack() as stack:
                stack.push_async_callback(plane.stop)
                await plane.start()
                client = await connect(plane.kubeconfig("admin"))
                stack.push_async_callback(client.close)
                cluster = cls(plane, client)
                for name in NODES:
                    await cluster.call("POST", "/api/v1/nodes", node(name))
                await cluster.kubectl("apply", "--server-side", "-f", str(HERE / "crds.yaml"))
                await cluster.kubectl("wait", "--for=condition=Established", "--all", "crd")
                yield cluster

    async def kubectl(self, *words: str, given: str = "") -> str:
        """Run kubectl as the administrator; return what it prints.

        Raises:
            KubectlError: It fails.
        """
        process = await asyncio.create_subprocess_exec(
            str(find("kubectl")),
            f"--kubeconfig={self.plane.kubeconfig('admin')}",
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate(given.encode())
        if process.returncode:
            raise KubectlError(out.decode())
        return out.decode()

    async def apply(self, objects: Sequence[Object]) -> None:
        """Apply objects server-side with strict validation.

        Raises:
            KubectlError: The API server refuses one, or has a warning about one.
        """
        text = yaml.safe_dump_all(objects)
        out = await self.kubectl("apply", "--server-side", "--validate=strict", "-f-", given=text)
        if warnings := [line for line in out.splitlines() if line.startswith("Warning")]:
            raise KubectlError("\n".join(warnings))

    async def send(self, method: str, path: str, body: Object | None = None) -> Response:
        """Send a request, whatever the answer is."""
        kind = TYPES.get(method, "application/json")
        data = None if body is None else msgspec.json.encode(body)
        return await self._client.request(method, path, body=data, content_type=kind, timeout=30)

    async def call(self, method: str, path: str, body: Object | None = None) -> Any:
        """Send a request that must succeed; return the answer."""
        return msgspec.json.decode((await self.send(method, path, body)).check().body)

    async def items(self, path: str) -> list[Object]:
        """Return the objects of a collection."""
        items: list[Object] = (await self.call("GET", path)).get("items") or []
        return items

    async def find(self, resource: str, namespace: str, name: str) -> Object:
        """Return an object of the core group.

        Raises:
            MissingError: There is none.
        """
        answer = await self.send("GET", f"/api/v1/namespaces/{namespace}/{resource}/{name}")
        if answer.status == 404:
            raise MissingError(f'{resource[:-1]} "{name}" not found')
        found: Object = msgspec.json.decode(answer.check().body)
        return found

    def on_host(self, path: str) -> Path:
        """Return a file of the node's own.

        Raises:
            MissingError: There is none.
        """
        found = self.host / path.lstrip("/")
        if not found.exists():
            raise MissingError(f"hostPath {path} does not exist")
        return found

    async def token(self, pod: Object, source: Object) -> str:
        """Ask for a token of a pod's service account that is bound to the pod, as kubelets do."""
        metadata, account = pod["metadata"], pod["spec"]["serviceAccountName"]
        bound = {
            "kind": "Pod",
            "apiVersion": "v1",
            "uid": metadata["uid"],
            "name": metadata["name"],
        }
        spec: Object = {"expirationSeconds": source["expirationSeconds"], "boundObjectRef": bound}
        spec["audiences"] = [source["audience"]] if "audience" in source else []
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        token: str = (await self.call("POST", path, request))["status"]["token"]
        return token

    async def fill_namespaces(self) -> None:
        """Create in each namespace what controllers would."""
        authority = (self.directory / "certificates" / "apiserver.crt").read_text()
        account: Object = {"metadata": {"name": "default"}}
        root: Object = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": authority}}
        for namespace in await self.items("/api/v1/namespaces"):
            path = f"/api/v1/namespaces/{namespace['metadata']['name']}"
            await self.send("POST", f"{path}/serviceaccounts", account)
            await self.send("POST", f"{path}/configmaps", root)
