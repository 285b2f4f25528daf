"""A real Karpenter whose provider makes Node objects and nothing else, and what stands around it.

Kubelets: a node comes with a startup taint, as with a network plugin. The kubelet played here
writes its annotations, says that it is ready, and takes the taint away: no pod is bound before.
The garbage collector: a pod goes whose owner, a pod, is gone or was never there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec
import yaml

from cli.up.processes import free_ports
from moorage_host.kube import KubeError
from tests.scenarios.world import EVENTS, PATHS, PODS, World
from tools.build import KARPENTER, find, module_folder
from tools.planes.embedded import Object, answers
from tools.planes.objects import node, pod
from tools.planes.programs import Program

POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STARTING: Final = {"key": "example.com/starting", "effect": "NoSchedule"}
EACH: Final = 3
"""How many pods of one processor a node of the pool takes: it has four, and reserves some."""
READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
HOT: Final = ("hot-1", "hot-2", "hot-3")
"""Nodes that have room for all pods, and that the rule rejects."""
PLACEHOLDER, EXISTING = "moorage.io/placeholder", "moorage.io/existing"
NOW: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}

NODE_CLASS: Final[Object] = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}


def node_pool(*, cpu: int = 1000, consolidate: str = "Never", **metadata: Object) -> Object:
    """Build a NodePool of nodes with four processors, *cpu* of these in all.

    *consolidate* is after how long Karpenter may remove what it needs no more.
    """
    wanted = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.kwok.sh/instance-cpu": "4",
        "karpenter.kwok.sh/instance-family": "s",
    }
    kind = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {
                "metadata": metadata,
                "spec": {
                    "requirements": [
                        {"key": key, "operator": "In", "values": [value]}
                        for key, value in wanted.items()
                    ],
                    "startupTaints": [STARTING],
                    "nodeClassRef": kind,
                },
            },
            "limits": {"cpu": str(cpu)},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": consolidate,
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


def hot(name: str) -> Object:
    """Build a large node that the plugin Heated rejects."""
    labels = {"kubernetes.io/hostname": name}
    made = node(name, "64", annotations={"heated/hot": "yes"}, labels=labels)
    made["status"]["conditions"] = [READY]
    return made


def cool(name: str, cpu: str = "1", **more: Any) -> Object:
    """Build a pod that needs a node that is not hot, and one processor."""
    return pod(name, "heated", cpu, **more)


class Cluster:
    """A world with Karpenter.

    Attributes:
        world: The world.
        karpenter: The program.
        annotations: What kubelets write on new nodes.
        added: The names of the nodes that were ever added.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.annotations: dict[str, str] = {}
        self.added: set[str] = set()
        metrics, health = free_ports(2)
        self.karpenter = Program(
            name="karpenter",
            command=[str(find("karpenter"))],
            environment={
                "KUBECONFIG": str(world.plane.kubeconfig("admin")),
                "SYSTEM_NAMESPACE": "kube-system",
                "METRICS_PORT": str(metrics),
                "HEALTH_PROBE_PORT": str(health),
                "DISABLE_LEADER_ELECTION": "true",
            },
            log=world.plane.directory / "karpenter.log",
            ready=lambda: answers(f"http://127.0.0.1:{health}/readyz"),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Create Karpenter's definitions and a node class, and run all until the end."""
        await self._define()
        (await self.world.request("POST", CLASSES, NODE_CLASS)).check()
        await self.world.nodes(*map(hot, HOT))
        followers = [
            asyncio.create_task(self._follow(PATHS["Node"], self._start)),
            asyncio.create_task(self._follow("/api/v1/pods", self._collect)),
        ]
        try:
            await self.karpenter.start()
            yield
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.wait(followers)
            await self.karpenter.stop()

    @asynccontextmanager
    async def controller(self, *options: str, name: str = "capacity") -> AsyncIterator[Program]:
        """Run `moorage capacity` with the rights that the chart gives it."""
        world = self.world

        async def runs() -> bool:
            return True

        program = Program(
            name=name,
            module="tests.cli.command",
            command=[
                "capacity",
                f"--admin={world.services.admin}",
                f"--kubeconfig={world.plane.kubeconfig('capacity')}",
                *options,
            ],
            log=world.plane.directory / f"{name}.log",
            ready=runs,
        )
        program.log.write_bytes(b"")
        await program.start()
        try:
            yield program
        finally:
            await program.stop()

    async def pool(self, **options: Any) -> None:
        """Replace the NodePool."""
        made = node_pool(**options)
        answer = await self.world.request("POST", POOLS, made)
        if answer.status == 409:
            answer = await self.world.request("PATCH", f"{POOLS}/default", made)
        answer.check()

    async def delete(self, *names: str) -> None:
        """Delete pods, as their owner does; Karpenter may have evicted some."""
        for name in names:
            answer = await self.world.request("DELETE", f"{PODS}/{name}", NOW)
            if answer.status != 404:
                answer.check()

    async def placeholders(self) -> dict[str, Object]:
        """Return the placeholder pods of all namespaces by name."""
        found = (await self.world.read("/api/v1/pods"))["items"]
        labels = ((each, each["metadata"].get("labels") or {}) for each in found)
        return {each["metadata"]["name"]: each for each, own in labels if PLACEHOLDER in own}

    async def nodes(self) -> dict[str, Object]:
        """Return all nodes by name."""
        found = (await self.world.read(PATHS["Node"]))["items"]
        return {each["metadata"]["name"]: each for each in found}

    async def marked(self) -> set[str]:
        """Return the nodes that have a label of ours."""
        nodes = await self.nodes()
        return {n for n, each in nodes.items() if EXISTING in each["metadata"].get("labels", {})}

    async def claims(self) -> list[Object]:
        """Return the NodeClaims."""
        found: list[Object] = (await self.world.read(CLAIMS))["items"]
        return found

    async def has_no_placeholder(self) -> bool:
        """Whether no request is left."""
        return not await self.placeholders()

    async def is_clean(self) -> bool:
        """Whether nothing of ours is left: no placeholder, no label."""
        return not await self.placeholders() and not await self.marked()

    async def reset(self) -> None:
        """Remove all pods, and all nodes but the hot ones."""
        for path in (PODS, CLAIMS, EVENTS):
            (await self.world.request("DELETE", path, NOW)).check()

        async def gone() -> bool:
            return not await self.claims() and set(await self.nodes()) == set(HOT)

        await self.world.until(gone)
        for name in await self.marked():
            none = {"metadata": {"labels": {EXISTING: None}}}
            (await self.world.request("PATCH", f"{PATHS['Node']}/{name}", none)).check()
        await self.world.until(self.is_clean)
        self.annotations, self.added = {}, set()
        (await self.world.request("DELETE", f"{POOLS}/default")).check()

    async def _follow(self, path: str, act: Callable[[str, Object], Awaitable[None]]) -> None:
        while True:
            with suppress(KubeError, TimeoutError):
                lines = self.world.client.stream_lines(path, query={"watch": "1"}, silence=3600)
                async for line in lines:
                    event = msgspec.json.decode(line)
                    await act(event["type"], event["object"])

    async def _start(self, kind: str, node: Object) -> None:
        ours = node["spec"].get("providerID", "").startswith("kwok://")
        if not ours or kind not in ("ADDED", "MODIFIED"):
            return
        name, version = node["metadata"]["name"], node["metadata"]["resourceVersion"]
        self.added.add(name)
        taints = node["spec"].get("taints", [])
        left = [taint for taint in taints if taint["key"] != STARTING["key"]]
        path = f"{PATHS['Node']}/{name}"
        if not any(c["status"] == "True" for c in node["status"].get("conditions") or ()):
            await self.world.request("PATCH", f"{path}/status", {"status": {"conditions": [READY]}})
        elif taints != left:
            # If Karpenter has written in between, this is refused, and its change comes.
            metadata = {"resourceVersion": version, "annotations": self.annotations}
            change = {"metadata": metadata, "spec": {"taints": left}}
            await self.world.request("PATCH", path, change)

    async def _collect(self, kind: str, pod: Object) -> None:
        metadata = pod["metadata"]
        base = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        if kind == "DELETED":
            for each in (await self.world.read(base))["items"]:
                owners = each["metadata"].get("ownerReferences", ())
                if any(owner["uid"] == metadata["uid"] for owner in owners):
                    await self.world.request("DELETE", f"{base}/{each['metadata']['name']}", NOW)
        elif kind == "ADDED":
            for owner in metadata.get("ownerReferences", ()):
                answer = await self.world.request("GET", f"{base}/{owner['name']}")
                if owner["kind"] == "Pod" and owner["uid"].encode() not in answer.body:
                    await self.world.request("DELETE", f"{base}/{metadata['name']}", NOW)

    async def _define(self) -> None:
        folder = module_folder(KARPENTER, "sigs.k8s.io/karpenter")
        for file in (
            f for part in ("kwok/apis", "pkg/apis") for f in (folder / part).glob("crds/*")
        ):
            text = file.read_text()
            (await self.world.request("POST", DEFINITIONS, yaml.safe_load(text))).check()

        async def served() -> bool:
            paths = (POOLS, CLAIMS, CLASSES)
            return all([(await self.world.request("GET", path)).ok for path in paths])

        await self.world.until(served)
