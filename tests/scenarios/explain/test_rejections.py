"""Each filter plugin's rejection: the first line has the plugin and its reason."""

from collections.abc import Mapping

import pytest

from tests.scenarios.explain.asking import named
from tests.scenarios.test_stateful_sets import known, member, stateful_set
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUN = "tekton.dev/pipelineRun"
NODE = "/api/v1/nodes/n1"

NO_FILTERS = {"preFilter": {"disabled": [{"name": "*"}]}, "filter": {"disabled": [{"name": "*"}]}}
"""kube-scheduler leaves its own rules to the plugins of Moorage that repeat them."""

PROFILES = [
    {"schedulerName": "ruled", "plugins": NO_FILTERS},
    {"schedulerName": "steered"},
]


def rule(labels: dict[str, str]) -> list[Object]:
    """Return a required term about pods with labels, in a domain that is the node."""
    selector = {"matchLabels": labels}
    return [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]


def near(labels: dict[str, str], kind: str) -> Object:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": rule(labels)}}}


PLUGINS = ("moorage", "colocated", "isolated", "overloading", "zoned", "steered")
"""Profiles with a filter plugin each."""

PORT = {"name": "main", "image": "app:1", "ports": [{"containerPort": 80, "hostPort": 8080}]}
DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk-1"}}]}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "rack",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}

RULES: Mapping[str, tuple[Object, str, str]] = {
    "selects": (
        {"nodeSelector": {"disk": "ssd"}},
        "NodeAffinity",
        r"node\(s\) didn't match Pod's node affinity/selector",
    ),
    "listens": ({"containers": [PORT]}, "NodePorts", r"node\(s\) didn't have free ports"),
    "large": ({}, "NodeResourcesFit", "Insufficient cpu"),
    "mounts": (DISK, "VolumeRestrictions", r"node\(s\) had no available disk"),
    "spreads": (
        {"topologySpreadConstraints": [SPREAD]},
        "PodTopologySpread",
        r"node\(s\) didn't match pod topology spread constraints \(missing required label\)",
    ),
    "nears": (
        near({"app": "database"}, "podAffinity"),
        "InterPodAffinity",
        r"node\(s\) didn't match pod affinity rules",
    ),
    "avoids": (
        near({"app": "web"}, "podAntiAffinity"),
        "InterPodAffinity",
        r"node\(s\) didn't match pod anti-affinity rules",
    ),
    "avoided": (
        {},
        "InterPodAffinity",
        r"node\(s\) didn't satisfy existing pods anti-affinity rules",
    ),
}
"""What a pod asks for that the node does not have; the plugin that finds out, and its reason."""


def asking(name: str, profile: str) -> Object:
    spec = RULES[name][0]
    labels = {"role": "loud"} if name == "avoided" else {}
    cpu = "100" if name == "large" else "10m"
    return pod(f"{name}-{profile}", profile, cpu, labels=labels, spec=spec)


def refused(reason: str, by: str, nodes: int = 1) -> str:
    none = "the only node does not suit it" if nodes == 1 else f"none of {nodes} nodes suits it"
    return rf"is pending: {none}: {nodes} {reason}.*\({by}\)$"


async def test_rules_of_kube_scheduler(world: World) -> None:
    """Whether kube-scheduler's own plugin rejects, or Moorage's plugin with the same rule."""
    await world.nodes(node("n1", labels={"kubernetes.io/hostname": "n1"}))
    holder = pod("holder", labels={"app": "web"})
    holder["spec"] |= {"nodeName": "n1", "containers": [PORT]} | DISK
    holder["spec"] |= near({"role": "loud"}, "podAntiAffinity")
    await world.create(holder)
    async with world.scheduler(top={"profiles": PROFILES}):
        pods = [asking(name, profile) for name in RULES for profile in ("ruled", "steered")]
        await world.create(*pods)
        expected = {}
        for name, (_, plugin, reason) in RULES.items():
            expected[f"{name}-ruled"] = refused(reason, f"Moorage {plugin}")
            expected[f"{name}-steered"] = refused(reason, "kube-scheduler")
        await named(world, expected)

        taint = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
        (await world.request("PATCH", NODE, {"spec": {"taints": [taint]}})).check()
        await world.create(pod("repelled-ruled", "ruled"), pod("repelled-steered"))
        tainted = r"node\(s\) had untolerated taint"
        await named(
            world,
            {
                "repelled-ruled": refused(tainted, "Moorage TaintToleration"),
                "repelled-steered": refused(tainted, "kube-scheduler"),
            },
        )
        spec = {"taints": None, "unschedulable": True}
        (await world.request("PATCH", NODE, {"spec": spec})).check()
        await world.create(pod("cordoned-ruled", "ruled"), pod("cordoned-steered"))
        cordoned = r"node\(s\) were unschedulable"
        await named(
            world,
            {
                "cordoned-ruled": refused(cordoned, "Moorage NodeUnschedulable"),
                "cordoned-steered": refused(cordoned, "kube-scheduler"),
            },
        )


async def test_rules_of_moorage(world: World) -> None:
    busy = {"mean-free-cpu": "100", "std-free-cpu": "10"}
    nodes = (node(name, annotations=busy, labels={"spot": name}) for name in ("n1", "n2"))
    await world.nodes(*nodes)
    (owner,) = await world.create(stateful_set("db"))
    await known(world, "statefulsets.apps", 1)

    def on(name: str) -> Object:
        return {"nodeSelector": {"spot": name}}

    async with world.scheduler(*PLUGINS):
        await world.create(pod("first", "isolated", labels={RUN: "a"}, spec=on("n1")))
        await world.bound("first")
        await world.create(
            pod("grouped", "moorage", labels={"nodeGroup": "gpu"}),
            pod("apart", "isolated", labels={RUN: "b"}, spec=on("n1")),
            pod("together", "colocated", labels={RUN: "a"}, spec=on("n2")),
            pod("heavy", "overloading", "7900m"),
            member(owner, 0),
            pod("steered", reject={"n1": "no slice", "n2": "no slice"}),
        )
        await named(
            world,
            {
                "grouped": r"2 node does not have required label \(Moorage NodeGroup\)",
                "apart": r"1 node\(s\) already ran another PipelineRun "
                r"\(Moorage OneNodePerPipelineRun\)",
                "together": r"1 node\(s\) didn't run the other pods of the PipelineRun "
                r"\(Moorage OneNodePerPipelineRun\)",
                "heavy": r"node would likely be overloaded \(Moorage SafeOverload\)",
                "db-0": r"node\(s\) have no zone \(Moorage StatefulSetZone\)",
                "steered": r"no slice \(Moorage Steered\)",
            },
        )
