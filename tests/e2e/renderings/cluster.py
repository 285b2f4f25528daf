"""A real control plane and a node, for one rendering."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import yaml

from moorage_host.kube import connect
from tests.e2e.renderings.node.api import Api
from tests.e2e.renderings.node.containers import Images
from tests.e2e.renderings.node.network import SERVICES, Network
from tests.e2e.renderings.node.node import Node
from tools.build import find
from tools.image.isolated import Isolated
from tools.planes.embedded import Object
from tools.planes.objects import node
from tools.planes.real import RealPlane

HERE = Path(__file__).parent
NODES = ("node-1", "node-2")
# The plugin ServiceAccount gives pods the volume with their token, as everywhere.
ADMISSION = "TaintNodesByCondition,StorageObjectInUseProtection"


class KubectlError(Exception):
    """kubectl failed; the message is what it printed."""


class Cluster:
    """One control plane with one node.

    Attributes:
        plane: The control plane.
        api: Its API server, with all rights.
        node: What runs pods.
        directory: Where everything is written.
    """

    def __init__(self, plane: RealPlane, api: Api, node: Node) -> None:
        self.plane = plane
        self.api = api
        self.node = node
        self.directory = plane.directory

    @classmethod
    @asynccontextmanager
    async def started(cls, directory: Path, image: Isolated) -> AsyncIterator[Self]:
        """Start everything but pods, with Moorage's image; stop everything in the end."""
        network = Network(directory)
        # Without lists that come as watches, both verbs are used, as on servers before 1.34.
        options = {
            "service-cluster-ip-range": SERVICES,
            "disable-admission-plugins": ADMISSION,
        }
        plane = RealPlane(directory, "WatchList=false", deployed=False, options=options)
        async with AsyncExitStack() as stack:
            await network.start()
            stack.push_async_callback(network.stop)
            stack.push_async_callback(plane.stop)
            await plane.start()
            client = await connect(plane.kubeconfig("admin"))
            stack.push_async_callback(client.close)
            api = Api(client, directory / "host")
            running = Node(directory / "pods", network, api, Images(image), list(NODES))
            stack.push_async_callback(running.stop)
            await running.start(plane.port)
            cluster = cls(plane, api, running)
            await cluster._prepare()
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

    async def apply(self, objects: Sequence[Object]) -> str:
        """Apply objects server-side with strict validation.

        Raises:
            KubectlError: The API server refuses one, or has a warning about one.
        """
        text = yaml.safe_dump_all(objects)
        out = await self.kubectl("apply", "--server-side", "--validate=strict", "-f-", given=text)
        if warnings := [line for line in out.splitlines() if line.startswith("Warning")]:
            raise KubectlError("\n".join(warnings))
        return out

    async def _prepare(self) -> None:
        """Create what others give a cluster: nodes, CRDs, and what controllers would make."""
        for name in NODES:
            await self.api.call("POST", "/api/v1/nodes", node(name))
        await self.kubectl("apply", "--server-side", "-f", str(HERE / "crds.yaml"))
        await self.kubectl("wait", "--for=condition=Established", "--all", "crd")

    async def fill_namespaces(self) -> None:
        """Create in each namespace what controllers would."""
        authority = (self.directory / "certificates" / "apiserver.crt").read_text()
        account: Object = {"metadata": {"name": "default"}}
        root: Object = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": authority}}
        for namespace in await self.api.items("/api/v1/namespaces"):
            path = f"/api/v1/namespaces/{namespace['metadata']['name']}"
            await self.api.send("POST", f"{path}/serviceaccounts", account)
            await self.api.send("POST", f"{path}/configmaps", root)
