"""A rendering on a cluster: applied, with certificates, running, used, and examined by doctor."""

import asyncio
import base64
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Self

import aiohttp
import jsonpatch
import yaml

from cli.certs.certificates import issue, keep_certificates, new_authority, secrets
from cli.doctor.checks import findings
from cli.doctor.installation.installation import read_installation
from cli.shared.gateway.options import GatewayOptions
from sandbox.apiserver.server import kubeconfig
from tests.e2e.renderings.cluster import HERE, NODES, Cluster
from tests.e2e.renderings.pods import SCHEDULER, Pod, behind, scheduler_image, selects
from tools.image.isolated import Isolated
from tools.planes.embedded import Object
from tools.planes.kubelet import HOST, Streams, kubelet
from tools.planes.objects import pod
from tools.planes.programs import stop_all

SECONDS = 150.0
OUR_NAMESPACE = "moorage"
GATEWAY = "moorage-gateway"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
GROUP = "nodeGroup"
"""The label that the shipped policy's plugin NodeGroup compares."""

LAST = ("gateway", "scheduler")
"""The Deployments that start last: calls come before a gateway is ready, as no Service waits."""

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{OUR_NAMESPACE}/deployments"
CONTROL_PLANE = "control-plane"
"""The ConfigMap with what changes the cluster's own kube-scheduler."""

PLACES = {
    "kube-scheduler-config.yaml": "etc/kubernetes/moorage-scheduler.yaml",
    "plain-scheduler-config.yaml": "etc/kubernetes/moorage-plain-scheduler.yaml",
}
"""Where docs/how-to/kubeadm.md puts the configurations on the node."""

KUBECONFIG = "etc/kubernetes/scheduler.conf"
FINE = ("ok", "not checked")
"""Levels of doctor's findings that are no fault of a rendering, which need not have everything."""


class Installation:
    """One rendering on a cluster.

    Of each Deployment one pod runs, but of gateways as many as are rendered.

    Attributes:
        cluster: The cluster.
        objects: What is rendered.
        certificates: A folder with one for each identity.
        pods: The pods that run.
    """

    def __init__(self, cluster: Cluster, image: Isolated, objects: Sequence[Object]) -> None:
        self.cluster = cluster
        self.objects = objects
        self.certificates = cluster.directory / "certs"
        self.pods: list[Pod] = []
        schedulers = scheduler_image(cluster.directory / "image")
        self._images = {"moorage": image, SCHEDULER: schedulers}
        self._services: list[Object] = []
        self._schedulers: set[str] = set()  # that run, so that pods of theirs need not be placed
        self._nodes = cycle(NODES)
        self._changed = False  # whether a gateway that led was ended

    @classmethod
    @asynccontextmanager
    async def on(
        cls, directory: Path, image: Isolated, objects: Sequence[Object]
    ) -> AsyncIterator[Self]:
        """Run a cluster for it; stop everything in the end."""
        async with Cluster.started(directory) as cluster:
            made = cls(cluster, image, objects)
            try:
                yield made
            finally:
                await stop_all([program for each in made.pods for program in each.programs])

    async def install(self) -> None:
        """Apply the objects, make the Secrets, and start Moorage's processes."""
        if not self.kind("Namespace"):  # as docs/how-to/install.md wants it
            space: Object = {"metadata": {"name": OUR_NAMESPACE, "labels": RESTRICTED}}
            await self.cluster.call("POST", "/api/v1/namespaces", space)
        await self.cluster.apply(self.objects)
        await self.cluster.fill_namespaces()
        await self.cluster.apply(self._secrets())
        self._services = await self.cluster.items("/api/v1/services")
        for config in self.kind("ConfigMap"):
            if config["metadata"]["name"] == CONTROL_PLANE:
                await self._run_static_pods(config["data"])
        for deployment in sorted(self.kind("Deployment"), key=_turn):
            if deployment["metadata"]["namespace"] == OUR_NAMESPACE:
                await self.deploy(deployment)

    async def deploy(self, deployment: Object) -> None:
        """Create pods of a Deployment, have them placed, and start them."""
        is_gateway = deployment["metadata"]["name"] == "gateway"
        count = deployment["spec"].get("replicas", 1) if is_gateway else 1
        for obj in await self.create(deployment, count):
            metadata, spec = obj["metadata"], obj["spec"]
            path = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods/{metadata['name']}"
            if spec["schedulerName"] in self._schedulers:
                await self.until(partial(self._is_placed, path))
            else:
                target = {"kind": "Node", "name": next(self._nodes)}
                binding = {"metadata": {"name": metadata["name"]}, "target": target}
                await self.cluster.call("POST", f"{path}/binding", binding)
            await self._start(obj, alone=count == 1)

    async def create(self, deployment: Object, count: int) -> list[Object]:
        """Create so many pods of a Deployment."""
        metadata, template = deployment["metadata"], deployment["spec"]["template"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        names = (f"{metadata['name']}-{number}" for number in range(count))
        bodies = (
            {"metadata": {**template["metadata"], "name": name}, "spec": template["spec"]}
            for name in names
        )
        return [await self.cluster.call("POST", path, body) for body in bodies]

    async def ready(self) -> None:
        """Wait until all pods are ready but gateways of which another one leads.

        Raises:
            AssertionError: They do not get ready; the message says what each lacks.
        """

        async def enough() -> bool:
            waiting = [each for each in self.pods if not each.ready and not stands_by(each)]
            return not waiting and any(each.ready for each in self.pods if _has_gateway(each))

        await self.until(enough)

    async def schedule(self) -> None:
        """Have pods bound that only Moorage's rules lead to their nodes."""
        await self._label("node-2", "2")
        profile = self._profile
        await self._create(pod("grouped", profile, labels={GROUP: "2"}))
        await self._create(pod("late", profile, labels={GROUP: "1"}))
        await self._create(*(pod(f"any-{i}", profile) for i in range(3)))
        for deployment in self.kind("Deployment"):
            if deployment["metadata"]["namespace"] != OUR_NAMESPACE:
                await self.create(deployment, deployment["spec"]["replicas"])
        await self.until(self._waits_for_a_node)
        await self._label("node-1", "1")
        await self.until(self._all_bound)
        (attempt, *_) = await self._decisions("grouped")
        assert attempt["outcome"] == "bound", attempt
        await self._change_leader()
        for each in await self._users():
            group = each["metadata"].get("labels", {}).get(GROUP)
            assert group is None or each["spec"]["nodeName"] == f"node-{group}", each

    async def examine(self) -> list[str]:
        """Return what `moorage doctor` finds wrong through the API server, with its advice."""
        for obj in self.kind("Deployment"):  # what controllers would write
            name = obj["metadata"]["name"]
            if obj["metadata"]["namespace"] == OUR_NAMESPACE:
                wanted = obj["spec"].get("replicas", 1)
                status = {"replicas": wanted, "readyReplicas": wanted}
                await self.cluster.call("PATCH", f"{DEPLOYMENTS}/{name}/status", {"status": status})
        options = GatewayOptions(
            kubeconfig=self.cluster.plane.kubeconfig("admin"), tls=self.certificates / "operator"
        )
        folder = self.cluster.directory / "kubelet"
        folder.mkdir()

        async def connect(name: str, port: int) -> Streams:
            (address,) = (each.address for each in self.pods if each.name == name)
            return await asyncio.open_connection(address, port)

        async with kubelet(folder, connect) as port:
            for name in NODES:
                status = {
                    "addresses": [{"type": "InternalIP", "address": HOST}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                }
                path = f"/api/v1/nodes/{name}/status"
                await self.cluster.call("PATCH", path, {"status": status})
            found = findings(await read_installation(options, None))
        return [
            f"{each.level}: {each.check}: {each.evidence}; change: {each.change}"
            for each in found
            if each.level not in FINE and not (self._changed and each.check == "leader")
        ]

    async def test(self, objects: Sequence[Object]) -> None:
        """Do what `helm test` does with its *objects*: the pod has to be placed, and to succeed."""
        (hook,) = (each for each in objects if each["kind"] == "Pod")
        await self.cluster.apply([each for each in objects if each is not hook])
        self._services = await self.cluster.items("/api/v1/services")
        folder = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods"
        path = f"{folder}/{hook['metadata']['name']}"
        await self.cluster.call("POST", folder, hook)
        await self.until(partial(self._is_placed, path))
        obj = await self.cluster.call("GET", path)
        started = Pod(self.cluster, obj, "10.244.2.1", self.cluster.directory / "pods" / "test")
        started.write_hosts(list(behind(self._services, self.pods)))
        await started.start(self._images)
        (program,) = started.programs

        async def ended() -> bool:
            return not program.running

        await self.until(ended)
        assert "the gateway's /readyz: 200 " in program.last_words(), program.last_words()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds, and ask all probes meanwhile.

        Raises:
            AssertionError: It does not; the message says what is wrong with each pod.
        """
        try:
            async with asyncio.timeout(SECONDS):
                while not await condition():
                    await self.look()
                    await asyncio.sleep(0.1)
        except TimeoutError as error:
            raise AssertionError(
                f"{condition}: {await self._waiting()}{self._problems()}"
            ) from error

    async def look(self) -> None:
        """Ask all probes, and lead Services to the pods that are ready."""
        for each in self.pods:
            await each.look()
        found = list(behind(self._services, self.pods))
        for each in self.pods:
            each.write_hosts(found)

    def kind(self, kind: str) -> list[Object]:
        """Return what is rendered of a kind."""
        return [obj for obj in self.objects if obj["kind"] == kind]

    # ---- processes

    async def _start(self, obj: Object, *, alone: bool) -> None:
        """Run a pod; one that is *alone* has the address of its Service, if that has one."""
        address = f"10.244.1.{len(self.pods) + 1}"
        for service in self._services:
            if alone and service["spec"]["clusterIP"] != "None" and selects(service, obj):
                address = service["spec"]["clusterIP"]
        folder = self.cluster.directory / "pods" / str(obj["metadata"]["name"])
        started = Pod(self.cluster, obj, address, folder)
        started.write_hosts(list(behind(self._services, self.pods)))
        self.pods.append(started)
        await started.start(self._images)
        await self.look()

    async def _run_static_pods(self, data: Mapping[str, str]) -> None:
        """Do on a node of the control plane what the rendering's ConfigMap is for."""
        host, plane = self.cluster.host, self.cluster.plane
        shutil.copytree(self.certificates / "scheduler", host / "etc/moorage/tls")
        (host / KUBECONFIG).parent.mkdir(parents=True)
        for name in PLACES.keys() & data.keys():
            (host / PLACES[name]).write_text(data[name])
            profiles = yaml.safe_load(data[name])["profiles"]
            self._schedulers |= {each["schedulerName"] for each in profiles}
        # As kubeadm writes it, with everything in one file.
        made = plane.authority.sign(SCHEDULER, f"system:{SCHEDULER}")
        user = _inline("client-certificate", made.crt) | _inline("client-key", made.key)
        given = _inline("certificate-authority", plane.directory / "certificates" / "apiserver.crt")
        config = kubeconfig(plane.url, "own", cluster=given, user=user)
        (host / KUBECONFIG).write_text(yaml.safe_dump(config))
        usual = yaml.safe_load((HERE / "kubeadm.yaml").read_text())
        patched = jsonpatch.apply_patch(usual, yaml.safe_load(data["kubeadm-patch.yaml"]))
        further = [
            manifest
            for text in data.values()
            for manifest in yaml.safe_load_all(text)
            if isinstance(manifest, dict) and manifest.get("kind") == "Pod"
        ]
        for manifest in (patched, *further):
            await self._start(manifest, alone=False)

    async def _change_leader(self) -> None:
        """End the gateway that leads where others stand by; have a pod bound through the next."""
        if not any(stands_by(each) for each in self.pods):
            return
        (leader,) = (each for each in self.pods if _has_gateway(each) and each.ready)
        self.pods.remove(leader)
        self._changed = True
        await stop_all(leader.programs)
        path = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods/{leader.name}"
        await self.cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
        await self.ready()
        await self._create(pod("after", self._profile))
        await self.until(self._all_bound)

    # ---- certificates

    def _secrets(self) -> list[Object]:
        keep_certificates(self.certificates, namespace=OUR_NAMESPACE)
        if wanted := self.kind("Certificate"):
            return _issued(wanted, self.certificates)
        return list(yaml.safe_load_all(secrets(self.certificates, OUR_NAMESPACE)))

    # ---- users' pods

    @property
    def _profile(self) -> str:
        """What pods write into spec.schedulerName."""
        (config,) = (
            yaml.safe_load(text)
            for obj in self.kind("ConfigMap")
            for name, text in obj["data"].items()
            if name == "kube-scheduler-config.yaml"
        )
        name: str = config["profiles"][-1]["schedulerName"]
        return name

    async def _users(self) -> list[Object]:
        items = await self.cluster.items("/api/v1/pods")
        return [obj for obj in items if obj["metadata"]["namespace"] != OUR_NAMESPACE]

    async def _decisions(self, name: str) -> list[Object]:
        """Return what any gateway has recorded about a pod."""
        folder = self.certificates / "operator"
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        found: list[Object] = []
        async with aiohttp.ClientSession() as session:
            for each in filter(_has_gateway, self.pods):
                url = f"https://{each.address}:9090/decisions/default/{name}"
                async with session.get(url, ssl=context, server_hostname=GATEWAY) as response:
                    if response.status == 200:
                        found += (await response.json())["attempts"]
        return found

    async def _label(self, node: str, group: str) -> None:
        body = {"metadata": {"labels": {GROUP: group}}}
        await self.cluster.call("PATCH", f"/api/v1/nodes/{node}", body)

    async def _create(self, *pods: Object) -> None:
        for each in pods:
            await self.cluster.call("POST", "/api/v1/namespaces/default/pods", each)

    async def _is_placed(self, path: str) -> bool:
        return "nodeName" in (await self.cluster.call("GET", path))["spec"]

    async def _waits_for_a_node(self) -> bool:
        obj = await self.cluster.find("pods", "default", "late")
        conditions = obj.get("status", {}).get("conditions") or ()
        return any(each.get("reason") == "Unschedulable" for each in conditions)

    async def _all_bound(self) -> bool:
        return all("nodeName" in each["spec"] for each in await self._users())

    # ---- what is wrong

    def _problems(self) -> str:
        """Return what is wrong with each pod, and the ends of all logs."""
        lines = [f"{each.name}: {each.problem}" for each in self.pods if not each.ready]
        for program in (program for each in self.pods for program in each.programs):
            lines += [f"--- {program.name}", program.last_words()]
        return "\n".join(lines)

    async def _waiting(self) -> str:
        """Return what the API server and the gateways know of pods that are not bound."""
        lines = []
        for each in await self._users():
            if "nodeName" not in each["spec"]:
                name = each["metadata"]["name"]
                lines.append(f"{name}: {each.get('status')}, {await self._decisions(name)}\n")
        return "".join(lines)


def stands_by(pod: Pod) -> bool:
    """Whether a pod is not ready because another one leads, which is as it should be."""
    return _has_gateway(pod) and "holds the Lease" in pod.problem


def _has_gateway(pod: Pod) -> bool:
    return any("gateway" in each["command"] for each in pod.containers)


def _turn(deployment: Object) -> int:
    name = deployment["metadata"]["name"]
    return 1 + LAST.index(name) if name in LAST else 0


def _inline(name: str, file: Path) -> dict[str, str]:
    return {f"{name}-data": base64.b64encode(file.read_bytes()).decode()}


def _issued(certificates: Sequence[Object], root: Path) -> list[Object]:
    """Return the Secrets that cert-manager would write: the names are those that are asked for."""
    now, life = datetime.now(UTC), timedelta(days=1)
    authority = new_authority(now, life)
    made = []
    for each in certificates:
        metadata, spec = each["metadata"], each["spec"]
        if spec.get("isCA"):
            continue
        issued = issue(authority, spec["dnsNames"], now, life)
        files = {
            "tls.crt": issued.certificate,
            "tls.key": issued.key,
            "ca.crt": authority.certificate,
        }
        folder = root / metadata["name"]
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        place = {"name": spec["secretName"], "namespace": metadata["namespace"]}
        head = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        made.append({**head, "metadata": place, "data": data})
    return made
