"""A rendering on a cluster: applied, with certificates, running, and used."""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import yaml

from cli.certs.certificates import (
    issue,
    keep_certificates,
    new_authority,
    secrets,
)
from tests.e2e.renderings.cluster import Cluster
from tests.e2e.renderings.control_plane import CONFIG_MAP, run_static_pods
from tests.e2e.renderings.node.pods import Pod
from tools.planes.embedded import Object
from tools.planes.objects import pod

SECONDS = 150.0
OUR_NAMESPACE = "moorage"
GATEWAY = "moorage-gateway"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
GROUP = "nodeGroup"
"""The label that the shipped policy's plugin NodeGroup compares."""


class Installation:
    """One rendering on a cluster.

    Attributes:
        cluster: The cluster.
        objects: What is rendered.
        certificates: A folder with one for each identity.
    """

    def __init__(self, cluster: Cluster, objects: Sequence[Object]) -> None:
        self.cluster = cluster
        self.objects = objects
        self.certificates = cluster.directory / "certs"

    async def install(self) -> None:
        """Apply the objects, make the Secrets, and start Moorage's processes."""
        if not self._kind("Namespace"):  # as docs/how-to/install.md wants it
            space: Object = {"metadata": {"name": OUR_NAMESPACE, "labels": RESTRICTED}}
            await self.cluster.api.call("POST", "/api/v1/namespaces", space)
        await self.cluster.apply(self.objects)
        await self.cluster.fill_namespaces()
        await self.cluster.apply(self._secrets())
        await self.cluster.node.follow_services()
        for config in self._kind("ConfigMap"):
            if config["metadata"]["name"] == CONFIG_MAP:
                certificate = self.certificates / "scheduler"
                await run_static_pods(self.cluster, config["data"], certificate)
        for deployment in self._kind("Deployment"):
            if deployment["metadata"]["namespace"] == OUR_NAMESPACE:
                await self.cluster.node.deploy(deployment)

    async def ready(self) -> str:
        """Wait until enough pods of every Deployment are ready; return how many of how many.

        Raises:
            AssertionError: They do not get ready; the message says what each lacks.
        """
        pods = self.cluster.node.pods

        async def enough() -> bool:
            waiting = [each for each in pods if not each.ready and not stands_by(each)]
            led = {_owner(each) for each in pods if each.ready}
            return not waiting and led == {_owner(each) for each in pods}

        await self.until(enough)
        return f"{sum(each.ready for each in pods)}/{len(pods)}"

    async def schedule(self) -> str:
        """Have pods bound that only Moorage's rules lead to their nodes; return how many."""
        await self._label("node-2", "2")
        profile = self.profile
        await self._create(pod("grouped", profile, labels={GROUP: "2"}))
        await self._create(pod("late", profile, labels={GROUP: "1"}))
        await self._create(*(pod(f"any-{i}", profile) for i in range(3)))
        for deployment in self._kind("Deployment"):
            if deployment["metadata"]["namespace"] != OUR_NAMESPACE:
                await self.cluster.node.create(deployment)
        await self.until(self._waits_for_a_node)
        await self._label("node-1", "1")
        await self.until(self._all_bound)
        (attempt, *_) = await self.decisions("grouped")
        assert attempt["outcome"] == "bound", attempt
        await self.change_leader()
        for each in (pods := await self.pods()):
            group = each["metadata"].get("labels", {}).get(GROUP)
            assert group is None or each["spec"]["nodeName"] == f"node-{group}", each
        return f"{len(pods)}/{len(pods)}"

    async def change_leader(self) -> None:
        """End the gateway that leads where others stand by; have a pod bound through the next."""
        pods = self.cluster.node.pods
        if not any(stands_by(each) for each in pods):
            return
        (leader,) = (each for each in pods if _has_gateway(each) and each.ready)
        await self.cluster.node.remove(leader)
        await self.ready()
        await self._create(pod("after", self.profile))
        await self.until(self._all_bound)

    async def decisions(self, name: str) -> list[Object]:
        """Return what any gateway has recorded about a pod."""
        folder = self.certificates / "operator"
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        found: list[Object] = []
        opens = self.cluster.node.network.node.opens
        connector = aiohttp.TCPConnector(socket_factory=opens)
        async with aiohttp.ClientSession(connector=connector) as session:
            for each in self.cluster.node.pods:
                if _has_gateway(each):
                    url = f"https://{each.endpoint.address}:9090/decisions/default/{name}"
                    async with session.get(url, ssl=context, server_hostname=GATEWAY) as response:
                        if response.status == 200:
                            found += (await response.json())["attempts"]
        return found

    async def pods(self) -> list[Object]:
        """Return the pods of users."""
        items = await self.cluster.api.items("/api/v1/pods")
        return [obj for obj in items if obj["metadata"]["namespace"] != OUR_NAMESPACE]

    @property
    def profile(self) -> str:
        """What pods write into spec.schedulerName."""
        (config,) = (
            yaml.safe_load(text)
            for obj in self._kind("ConfigMap")
            for name, text in obj["data"].items()
            if name == "kube-scheduler-config.yaml"
        )
        name: str = config["profiles"][-1]["schedulerName"]
        return name

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds.

        Raises:
            AssertionError: It does not; the message says what is wrong with each pod.
        """
        try:
            async with asyncio.timeout(SECONDS):
                while not await condition():
                    failed = [each.name for each in self.cluster.node.pods if each.failed]
                    assert not failed, self.problems()
                    await asyncio.sleep(0.1)
        except TimeoutError as error:
            waiting = await self._waiting()
            raise AssertionError(f"{condition.__name__}: {waiting}{self.problems()}") from error

    def problems(self) -> str:
        """Return what is wrong with each pod, and the ends of all logs."""
        pods = self.cluster.node.pods
        lines = [f"{each.name}: {each.problem}" for each in pods if not each.ready]
        for program in self.cluster.node.programs():
            lines += [f"--- {program.name}", program.last_words()]
        return "\n".join(lines)

    async def _waiting(self) -> str:
        """Return what the API server and the gateways know of pods that are not bound."""
        lines = []
        for each in await self.pods():
            if "nodeName" not in each["spec"]:
                name = each["metadata"]["name"]
                known = each.get("status"), await self.decisions(name)
                lines.append(f"{name}: {known}\n")
        return "".join(lines)

    def _kind(self, kind: str) -> list[Object]:
        return [obj for obj in self.objects if obj["kind"] == kind]

    def _secrets(self) -> list[Object]:
        keep_certificates(self.certificates, namespace=OUR_NAMESPACE)
        if wanted := self._kind("Certificate"):
            return list(_issued(wanted, self.certificates))
        text = secrets(self.certificates, OUR_NAMESPACE)
        return list(yaml.safe_load_all(text))

    async def _label(self, node: str, group: str) -> None:
        body = {"metadata": {"labels": {GROUP: group}}}
        await self.cluster.api.call("PATCH", f"/api/v1/nodes/{node}", body)

    async def _create(self, *pods: Object) -> None:
        for each in pods:
            await self.cluster.api.call("POST", "/api/v1/namespaces/default/pods", each)

    async def _waits_for_a_node(self) -> bool:
        obj = await self.cluster.api.find("pods", "default", "late")
        conditions = (obj or {}).get("status", {}).get("conditions") or ()
        return any(each.get("reason") == "Unschedulable" for each in conditions)

    async def _all_bound(self) -> bool:
        return all("nodeName" in each["spec"] for each in await self.pods())


def stands_by(pod: Pod) -> bool:
    """Whether a pod is not ready because another one leads, which is as it should be."""
    return _has_gateway(pod) and "holds the Lease" in pod.problem


def _has_gateway(pod: Pod) -> bool:
    spec = pod.obj["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return any("gateway" in each.get("command", ()) for each in containers)


def _owner(pod: Pod) -> str:
    return pod.name.rpartition("-")[0]


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
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": {"name": spec["secretName"], "namespace": metadata["namespace"]},
                "data": data,
            }
        )
    return made
