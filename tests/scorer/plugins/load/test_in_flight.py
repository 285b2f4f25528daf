"""Pods that are placed between two measurements do not all go where it was idle in the first."""

from collections import Counter
from typing import Any

import pytest

from moorage import Pod, ScorePlugin
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.models import Container, NodeManifest, Resources
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import LONG_AGO
from moorage.testing import make_pod, run_score
from moorage_host.plugins.ranking import run_scores
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.congestion_factor import CongestionFactor
from services.scorer.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from services.scorer.plugins.load.low_risk_over_commitment import LowRiskOverCommitment
from services.scorer.plugins.load.network_traffic import NetworkTraffic
from services.scorer.plugins.load.safe_balance import SafeBalance
from services.scorer.plugins.load.safe_overload import SafeOverload
from services.scorer.plugins.load.target_load_packing import TargetLoadPacking
from tests.annotated import loaded_node
from tests.fake_prometheus import fake_prometheus

GIB = 1024**3
NOTHING = make_pod("incoming", requests={"cpu": "0"})
"""A pod that is expected to use nothing."""

BUSY = ("busy-1", "busy-2", "busy-3")


def make(kind: type[ScorePlugin], **args: Any) -> ScorePlugin:
    return kind(check_arguments(args, kind.Args, "args"))


def cluster() -> Snapshot:
    """Return three nodes that use a good half, and one that was idle when it was measured."""
    snapshot = Snapshot()
    for row, name in enumerate((*BUSY, "idle")):
        share = 0.05 if name == "idle" else 0.55
        node = loaded_node(
            name,
            cpu="8",
            memory="32Gi",
            free_cpu=8000 * (1 - share),
            std_cpu=800,
            free_memory=32 * GIB * (1 - share),
            std_memory=3 * GIB,
            **{"congestion-factor": f"{share * 100}"},
        )
        snapshot.set_node(row, node)
    for number in range(30):
        old = make_pod(f"old-{number}", requests={"cpu": "400m", "memory": "1600Mi"})
        snapshot.place_pod(number % 3, old, since=LONG_AGO)
    return snapshot


async def place_twenty(plugin: ScorePlugin, snapshot: Snapshot) -> Counter[str]:
    """Place pods one after another, each on the best node, with the scorer's engine."""
    enabled = EnabledPlugin(plugin=plugin)
    profile = Profile(name="moorage", plugins=(enabled,))
    places: Counter[str] = Counter()
    for number in range(20):
        pod = make_pod(f"new-{number}", requests={"cpu": "400m", "memory": "1600Mi"})
        nodes = snapshot.nodes()
        totals = (await run_scores(profile, pod, nodes, Supervisor())).totals
        assert totals is not None
        best = int(totals.argmax())
        places[nodes.name(best)] += 1
        snapshot.place_pod(best, pod)
    return places


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (LoadVariationRiskBalancing, {}),
        (SafeBalance, {}),
        (SafeOverload, {}),
        (CongestionFactor, {"inFlight": "step"}),
    ],
)
async def test_twenty_pods_spread_over_the_nodes(
    kind: type[ScorePlugin], args: dict[str, Any]
) -> None:
    places = await place_twenty(make(kind, **args), cluster())
    # Half of a node is worth ten pods: those go to the idle one, and the rest to all four.
    assert 10 <= places["idle"] <= 15
    assert len(places) == 4


@pytest.mark.parametrize("kind", [LoadVariationRiskBalancing, SafeBalance, CongestionFactor])
async def test_without_the_correction_they_all_go_to_one(kind: type[ScorePlugin]) -> None:
    assert await place_twenty(make(kind, inFlight="off"), cluster()) == {"idle": 20}


async def test_target_load_packing_fills_a_node_only_up_to_the_target() -> None:
    # Each is expected to use 600m: up to 70 % there is room for 2 on each busy node and for 8 on
    # the idle one. The last six go over the target wherever they go.
    plugin = make(TargetLoadPacking, targetUtilization=70)
    places = await place_twenty(plugin, cluster())
    assert places["idle"] >= 8
    assert min(places[name] for name in BUSY) >= 2
    blind = make(TargetLoadPacking, targetUtilization=70, inFlight="off")
    assert len(await place_twenty(blind, cluster())) == 1


def pod(name: str, limit: str | None = None, request: str | None = None) -> Pod:
    limits = {} if limit is None else {"cpu": limit}
    requests = {} if request is None else {"cpu": request}
    resources = Resources(limits=limits, requests=requests)
    return make_pod(
        name, requests={"cpu": "0"}, node="node", containers=[Container(resources=resources)]
    )


@pytest.mark.parametrize(
    "kind",
    [
        LoadVariationRiskBalancing,
        LowRiskOverCommitment,
        SafeBalance,
        SafeOverload,
        TargetLoadPacking,
    ],
)
def test_a_new_pod_is_as_good_as_measured(kind: type[ScorePlugin]) -> None:
    def node(cpu: int, memory: int) -> NodeManifest:
        free_cpu, free_memory = 4000 - cpu, 16 * GIB - memory
        return loaded_node(
            free_cpu=free_cpu, free_memory=free_memory, std_cpu=300, std_memory=2 * GIB
        )

    resources = Resources(
        requests={"cpu": "800m", "memory": "3Gi"}, limits={"cpu": "1200m", "memory": "8Gi"}
    )
    uses = make_pod(
        "new",
        requests={"cpu": "0", "memory": "0"},
        containers=[Container(resources=resources)],
        node="node",
    )
    expected = 1200 if kind is TargetLoadPacking else 800
    incoming = make_pod("incoming", requests={"cpu": "400m", "memory": "1Gi"})
    measured = run_score(make(kind), incoming, node(2000 + expected, 12 * GIB), pods=[uses])
    not_yet = run_score(make(kind), incoming, node(2000, 9 * GIB), new_pods=[uses])
    never = run_score(make(kind, inFlight="off"), incoming, node(2000, 9 * GIB), new_pods=[uses])
    assert not_yet == pytest.approx(measured)
    assert never["node"] != pytest.approx(measured["node"], abs=0.5)


# trimaran's own nodes of one core, with pods that it would find in its cache of scheduled pods:
# the limit, or 1.5 times the request, or a whole core.
@pytest.mark.parametrize(
    ("measured", "new", "score"),
    [
        pytest.param(0, [], 40, id="new node"),
        pytest.param(50, [], 33, id="hot node: 40 * 50/60"),
        pytest.param(30, [pod("a", limit="1")], 0, id="excess utilisation"),
        pytest.param(0, [pod("a", limit="100m", request="10m")], 55, id="10 %: 60 * 10/40 + 40"),
        pytest.param(10, [pod("a", request="100m")], 78, id="25 %: 60 * 25/40 + 40 = 77.5"),
        pytest.param(10, [pod("a", limit="200m"), pod("b", request="200m")], 27, id="60 %"),
        pytest.param(0, [pod("a")], 0, id="100 %: 40 * 0/60"),
        pytest.param(0.1, [pod("a")], 0, id="more than there is"),
    ],
)
def test_agrees_with_trimaran(measured: float, new: list[Pod], score: float) -> None:
    node = loaded_node("node", cpu="1", free_cpu=1000 - 10 * measured)
    plugin = make(TargetLoadPacking, inFlight="step")
    (found,) = run_score(plugin, NOTHING, node, new_pods=new).values()
    assert found == score


async def test_network_traffic_takes_pods_to_cause_as_much_as_others_do() -> None:
    # 4.95 MB/s for the pods of the idle node and 30 others make 500 kB/s for each new one.
    traffic = {**dict.fromkeys(BUSY, 5e6), "idle": 0.0}
    async with fake_prometheus() as prometheus:
        prometheus.measures({"traffic": traffic})
        source = prometheus.settings(interval="1h", max_age="1h")
        plugin = NetworkTraffic(NetworkTraffic.Args(prometheus=source))
        blind = NetworkTraffic(NetworkTraffic.Args(prometheus=source, in_flight="off"))
        await plugin.start()
        await blind.start()
        places, blindly = (
            await place_twenty(plugin, cluster()),
            await place_twenty(blind, cluster()),
        )
        await plugin.stop()
        await blind.stop()
    assert 10 <= places["idle"] <= 15
    assert len(places) == 4
    assert blindly == {"idle": 20}
