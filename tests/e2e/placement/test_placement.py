"""Where pods land on a real kube-scheduler that leaves the choice to Moorage's own plugins.

Each profile of the policy below belongs to one scenario. kube-scheduler runs without any filter or
score plugin of its own, so that whatever is seen is Moorage's doing; only the article's example
runs beside the default plugins, as in the article.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

PREFIX = "my_scheduler_extension"
VERB = "my_new_priorities/image_score"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
ALL_OFF = [{"name": "*"}]
WITHOUT_PLUGINS = {"enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]}
"""What a profile of kube-scheduler needs at least."""

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
scoreScale: 10  # as the article's extender
profiles:
- schedulerName: extended-scheduler
  plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: ImageScore}]}}
- schedulerName: spread
  plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: PodTopologySpread}]}}
- schedulerName: together
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
    filter:
      enabled:
      - name: NodeUnschedulable
      - name: TaintToleration
      - name: NodeAffinity
      - name: NodePorts
      - name: NodeResourcesFit
      - name: InterPodAffinity
      - name: NodeGroup
    score:
      enabled:
      - {name: NodeMetadata, weight: 3}
      - {name: InterPodAffinity, weight: 6}
      - {name: NodeResourcesMostAllocated, weight: 3}
  pluginConfig:
  - name: NodeMetadata
    args: {metadataKey: price, metadataSource: Label, scoringStrategy: Lowest}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_world(bare: World) -> AsyncIterator[World]:
    """Moorage with the policy above, and the article's path."""
    alias = f"--extender-alias=/{PREFIX}/{VERB}=prioritize/ImageScore"
    async with bare.with_moorage(yaml.safe_load(POLICY), options={"gateway": [alias]}) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world that is empty before and after."""
    try:
        yield shared_world
    finally:
        await shared_world.clear()


def without_plugins(profile: str) -> Object:
    """Build a profile of a kube-scheduler that decides nothing itself."""
    plugins = {"multiPoint": {**WITHOUT_PLUGINS, "disabled": ALL_OFF}}
    return {"profiles": [{"schedulerName": profile, "plugins": plugins}]}


def with_image(name: str, image: str, size: int) -> Object:
    """Build a node that has an image."""
    obj = node(name)
    obj["status"]["images"] = [{"names": [image], "sizeBytes": size}]
    return obj


def of_image(name: str, profile: str, image: str) -> Object:
    """Build a pod of an image."""
    container = {"name": "main", "image": image}
    return pod(name, profile, spec={"containers": [container]})


async def in_turn(world: World, *pods: Object) -> dict[str, str]:
    """Create each pod when the one before it is bound; return all places."""
    for obj in pods:
        await world.create(obj)
        await world.bound(obj["metadata"]["name"])
    return await world.places()


# ---- the article's extender image_score

SMALL = 20 * 1024 * 1024
"""The size of an image for which kube-scheduler's own ImageLocality gives nothing."""


async def article_cluster(world: World) -> None:
    """Create the article's nodes; the one with the image is the busiest."""
    await world.nodes(
        with_image("master-node", "k8s.gcr.io/pause:3.1", SMALL),
        with_image("worker-node1", "nginx:1.15", SMALL),
        with_image("worker-node2", "docker.io/library/nginx:1.7.9", SMALL),
    )
    await world.create(pod("busy", "nobody", cpu="1", spec={"nodeName": "worker-node2"}))


def article_config(world: World, **changed: Any) -> Object:
    """Build the article's configuration, in today's form."""
    extender = {
        "urlPrefix": f"{world.services.extender}/{PREFIX}",
        "prioritizeVerb": VERB,
        "weight": 3,
        "enableHTTPS": False,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "extended-scheduler"}],
        "extenders": [extender | changed],
    }


@pytest.mark.parametrize("names", [False, True], ids=["nodes", "names"])
async def test_the_article_s_pod_lands_on_the_node_with_its_image(
    world: World, names: bool
) -> None:
    await article_cluster(world)
    config = article_config(world, nodeCacheCapable=names)
    async with world.configured_scheduler("article", config):
        await world.create(of_image("nginx", "extended-scheduler", "nginx:1.7.9"))
        assert (await world.bound("nginx"))["nginx"] == "worker-node2"


async def test_without_the_extender_it_lands_on_an_idle_node(world: World) -> None:
    await article_cluster(world)
    config = article_config(world) | {"extenders": []}
    async with world.configured_scheduler("article", config):
        await world.create(of_image("nginx", "extended-scheduler", "nginx:1.7.9"))
        assert (await world.bound("nginx"))["nginx"] != "worker-node2"


async def test_the_article_s_scores_are_0_0_1(world: World) -> None:
    await article_cluster(world)
    (made,) = await world.create(of_image("nginx", "extended-scheduler", "nginx:1.7.9"))
    nodes = (await world.read("/api/v1/nodes"))["items"]
    body = {"Pod": made, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    url = f"{world.services.extender}/{PREFIX}/{VERB}"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        answer = await response.json(content_type=None)
    scores = {"master-node": 0, "worker-node1": 0, "worker-node2": 0}
    assert scores | {each["Host"]: each["Score"] for each in answer} == {
        "master-node": 0,
        "worker-node1": 0,
        "worker-node2": 1,
    }


# ---- spreading, as SelectorSpread did it


async def test_pods_of_a_replica_set_are_spread(world: World) -> None:
    names = ("n1", "n2", "n3", "n4")
    await world.nodes(*(node(name, labels={HOSTNAME: name}) for name in names))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    pods = [pod(f"web-{i}", "spread", labels={"app": "web"}) for i in range(8)]
    for obj in pods:
        obj["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    strangers = [pod(f"other-{i}", "nobody", spec={"nodeName": "n1"}) for i in range(3)]
    await world.create(*strangers)
    async with world.scheduler(top=without_plugins("spread")):
        places = await in_turn(world, *pods)
    assert Counter(places[obj["metadata"]["name"]] for obj in pods) == dict.fromkeys(names, 2)


# ---- many plugins in one profile


def priced(name: str, price: int, **more: Any) -> Object:
    """Build a node with a price and a zone of its own."""
    labels = {"price": str(price), ZONE: name, **more.pop("labels", {})}
    obj = node(name, more.pop("cpu", "4"), labels=labels)
    return obj | {"spec": more}


def together(name: str, **fields: Any) -> Object:
    """Build a pod of the profile with many plugins."""
    return pod(name, "together", **fields)


def near(app: str) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}


def term(app: str) -> Object:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}


def on_port(name: str) -> Object:
    """Build a pod that takes port 8080 of a silver node."""
    ports = [{"containerPort": 8080, "hostPort": 8080}]
    container = {"name": "main", "image": "app:1", "ports": ports}
    return together(name, spec={"nodeSelector": {"price": "3"}, "containers": [container]})


@pytest_asyncio.fixture(loop_scope="session")
async def priced_nodes(world: World) -> None:
    """Nodes of which each but two differs from the others in what keeps pods off it."""
    mine = {"key": "owner", "value": "me", "effect": "NoSchedule"}
    await world.nodes(
        priced("gold", 9, labels={"nodeGroup": "1"}),
        priced("silver-a", 3),
        priced("silver-b", 3),
        priced("mine", 1, taints=[mine]),
        priced("cordoned", 2, unschedulable=True),
        priced("tiny", 2, cpu="50m"),
    )


async def test_many_plugins_place_pods_together(world: World, priced_nodes: None) -> None:
    tolerations = [{"key": "owner", "operator": "Exists"}]
    prefers = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "podAffinityTerm": term("db")}
        ]
    }
    async with world.scheduler(top=without_plugins("together")):
        places = await in_turn(
            world,
            together("small"),
            together("tolerant", cpu="100m", spec={"tolerations": tolerations}),
            together("grouped", cpu="100m", labels={"nodeGroup": "1"}),
            together(
                "db", cpu="2", labels={"app": "db"}, spec={"nodeSelector": {ZONE: "silver-b"}}
            ),
            together("web", cpu="100m", spec={"affinity": {"podAffinity": near("db")}}),
            together("packed", cpu="100m"),
            together("large", cpu="3"),
            together("away", cpu="100m", spec={"affinity": {"podAntiAffinity": near("db")}}),
            together("fond", cpu="100m", spec={"affinity": {"podAffinity": prefers}}),
        )
    assert places == {
        "small": "tiny",  # the cheapest without a taint
        "tolerant": "mine",  # cheaper, and tolerated
        "grouped": "gold",  # its group
        "db": "silver-b",
        "web": "silver-b",  # must be near db
        "packed": "silver-b",  # as cheap as silver-a, and fuller
        "large": "silver-a",  # silver-b is full
        "away": "silver-a",  # must not be near db
        "fond": "silver-b",  # wants to be near db
    }


async def test_what_many_plugins_reject_is_told_together(world: World, priced_nodes: None) -> None:
    async with world.scheduler(top=without_plugins("together")):
        places = await in_turn(world, on_port("one"), on_port("two"))
        await world.create(on_port("three"))
        message = await world.condition("three", "Unschedulable")
    assert {places["one"], places["two"]} == {"silver-a", "silver-b"}
    assert message.split(" preemption: ")[0] == (
        "0/6 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were "
        "unschedulable, 2 node(s) didn't have free ports for the requested pod ports, 2 node(s) "
        "didn't match Pod's node affinity/selector."
    )
