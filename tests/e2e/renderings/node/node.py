"""As much of a node, and of the controllers that give it pods, as the renderings need."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.renderings.node.api import Api
from tests.e2e.renderings.node.containers import Images
from tests.e2e.renderings.node.network import DNS, Network, Sandbox
from tests.e2e.renderings.node.pods import Pod
from tests.e2e.renderings.node.services import Endpoint, Services
from tools.planes.embedded import Object
from tools.planes.programs import Program, stop_all

CLUSTER_DOMAINS = "svc.cluster.local svc.cluster.local cluster.local"
DEFAULT_SCHEDULER = "default-scheduler"


class Node:
    """Runs pods of Deployments, and static pods.

    Attributes:
        pods: All pods that run, in the order in which they were made.
        schedulers: Who places pods; for others this places them as default-scheduler would.
        network: Where they are.
    """

    def __init__(
        self, directory: Path, network: Network, api: Api, images: Images, names: list[str]
    ) -> None:
        self.pods: list[Pod] = []
        self.schedulers: set[str] = set()
        self.network = network
        self._api = api
        self._images = images
        self._directory = directory
        self._names = names
        self._services = Services(network, self._endpoints)
        self._known: list[Object] = []
        self._sandboxes: list[Sandbox] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._host: Sandbox | None = None

    async def start(self, api_port: int) -> None:
        """Serve names and the API server's address."""
        await self._services.start(api_port)

    async def stop(self) -> None:
        """End all pods at once."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(program.kill() for program in self.programs()))
        await stop_all([each.holder for each in self._sandboxes])
        await self._services.stop()

    def programs(self) -> list[Program]:
        """Return the processes of all pods."""
        return [program for pod in self.pods for program in pod.programs]

    async def follow_services(self) -> None:
        """Learn all Services that exist."""
        self._known = await self._api.items("/api/v1/services")
        for service in self._known:
            if service["metadata"]["name"] != "kubernetes":
                await self._services.add(service)

    async def create(self, deployment: Object) -> list[Object]:
        """Create the pods of a Deployment."""
        metadata, template = deployment["metadata"], deployment["spec"]["template"]
        made = []
        for number in range(deployment["spec"].get("replicas", 1)):
            own = {**template["metadata"], "namespace": metadata["namespace"]}
            own["name"] = f"{metadata['name']}-{number}"
            wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template["spec"]}
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
            made.append(await self._api.call("POST", path, wanted))
        return made

    async def deploy(self, deployment: Object) -> None:
        """Run the pods of a Deployment: they are created, scheduled and started."""
        for pod in await self.create(deployment):
            if pod["spec"]["schedulerName"] not in self.schedulers:
                await self._place(pod)
            await self._run(pod)

    async def remove(self, pod: Pod) -> None:
        """End a pod as its deletion does; nobody makes another one."""
        self.pods.remove(pod)
        self._tasks[pod.name].cancel()
        await stop_all(pod.programs)
        path = f"/api/v1/namespaces/{pod.obj['metadata']['namespace']}/pods/{pod.name}"
        await self._api.call("DELETE", path, {"gracePeriodSeconds": 0})

    async def run_static(self, manifest: Object) -> None:
        """Run a pod that the API server does not know."""
        await self._run(manifest)

    async def _place(self, pod: Object) -> None:
        metadata, scheduler = pod["metadata"], pod["spec"]["schedulerName"]
        assert scheduler == DEFAULT_SCHEDULER, (
            f"{metadata['name']} waits for {scheduler}, which may wait for it"
        )
        target = {"kind": "Node", "name": self._names[len(self.pods) % len(self._names)]}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}}
        await self._api.call("POST", path, {**binding, "target": target})

    async def _run(self, obj: Object) -> None:
        name, spec = obj["metadata"]["name"], obj["spec"]
        if spec.get("hostNetwork"):
            sandbox = self._host = self._host or await self._sandbox("host")
        else:
            sandbox = await self._sandbox(name)
        obj["status"] = {"podIP": sandbox.address, "hostIP": sandbox.address}
        folder = self._directory / name
        pod = Pod(self._api, obj, sandbox, self.network.node.opens, self._images, folder)
        self.pods.append(pod)
        running = pod.run(self._known, self._files(obj, folder))
        self._tasks[name] = asyncio.create_task(running)

    async def _sandbox(self, name: str) -> Sandbox:
        made = await self.network.sandbox(name)
        self._sandboxes.append(made)
        return made

    def _endpoints(self) -> Iterator[Endpoint]:
        return (pod.endpoint for pod in self.pods)

    def _files(self, obj: Object, folder: Path) -> dict[str, Path]:
        """Write what a kubelet gives all containers of a pod."""
        spec, metadata = obj["spec"], obj["metadata"]
        policy = spec.get("dnsPolicy", "ClusterFirst")
        on_host = spec.get("hostNetwork", False)
        names = ""  # what the node itself uses knows nothing of the cluster
        if policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not on_host):
            search = f"{metadata['namespace']}.{CLUSTER_DOMAINS}"
            names = f"nameserver {DNS}\nsearch {search}\noptions ndots:5\n"
        hosts = ["127.0.0.1 localhost", f"{obj['status']['podIP']} {metadata['name']}"]
        aliases = spec.get("hostAliases") or ()
        hosts += [f"{alias['ip']} {' '.join(alias['hostnames'])}" for alias in aliases]
        content = {
            "resolv.conf": names,
            "hosts": "".join(f"{line}\n" for line in hosts),
            "nsswitch.conf": "hosts: files dns\n",
        }
        (folder / "etc").mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            (folder / "etc" / name).write_text(text)
        return {f"/etc/{name}": folder / "etc" / name for name in content}
