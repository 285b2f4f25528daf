import pytest

from sandbox.scheduler.cycle.cycle import sample_size
from tests.sandbox.scheduler.support import World, node_names
from tools.waiting import until


@pytest.mark.parametrize(
    ("nodes", "sample"),
    [
        (1, 1),
        (99, 99),
        (100, 100),
        (200, 100),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (5000, 500),
        (6000, 300),
        (10000, 500),
    ],
)
def test_the_adaptive_sample_is_kube_schedulers(nodes: int, sample: int) -> None:
    assert sample_size(nodes, 0) == sample


@pytest.mark.parametrize(
    ("nodes", "percentage", "sample"), [(5000, 100, 5000), (5000, 10, 500), (500, 10, 100)]
)
def test_a_percentage_is_taken_but_never_below_100_nodes(
    nodes: int, percentage: int, sample: int
) -> None:
    assert sample_size(nodes, percentage) == sample


async def test_each_pod_starts_where_the_search_for_the_last_one_ended(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    for name in ("first", "second", "third"):
        world.pod(name)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(world.placed("first", "second", "third"))
    samples = [node_names(body) for body in world.extender.bodies("filter")]
    assert [len(names) for names in samples] == [100, 100, 100]
    assert [names[0] for names in samples] == ["n000", "n100", "n050"]
    assert [names[-1] for names in samples] == ["n099", "n049", "n149"]


async def test_a_percentage_of_100_shows_every_node(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    world.pod("web")
    async with world.scheduler(
        {"filterVerb": "filter", "nodeCacheCapable": True}, percentageOfNodesToScore=100
    ):
        await until(world.placed("web"))
    assert len(node_names(world.extender.calls[0].json)) == 150


async def test_a_pod_of_a_daemon_set_is_searched_only_on_its_node(world: World) -> None:
    for index in range(3):
        world.node(f"n{index}")
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world.pod("agent", affinity=affinity)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(world.placed("agent"))
    assert node_names(world.extender.calls[0].json) == ["n1"]
