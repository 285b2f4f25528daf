"""Plugins that score by measured load, each with numbers worked out by hand.

Pods that are placed between two measurements count, and what is not measured is noted.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from moorage import ConfigurationError, PluginFailedError, Pod, ScorePlugin
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.models import Container, NodeManifest, Resources
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import LONG_AGO
from moorage.testing import make_node, make_pod, run_score, running
from moorage_host.plugins.ranking import run_scores
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins import BUILT_INS
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
POD = make_pod(requests={"cpu": "400m"})
OVERLOADING = make_pod(requests={"cpu": "500m", "memory": "1Gi"})


def make(kind: type[ScorePlugin], **args: Any) -> ScorePlugin:
    return kind(check_arguments(args, kind.Args, "args"))


def pod(
    limit: str | None = None, request: str | None = None, name: str = "pod", **others: Any
) -> Pod:
    limits = {} if limit is None else {"cpu": limit}
    requests = {} if request is None else {"cpu": request}
    containers = [Container(resources=Resources(limits=limits, requests=requests))]
    return make_pod(name, requests={"cpu": "0"}, containers=containers, **others)


@pytest.mark.parametrize(
    ("load", "target", "score"),
    [
        pytest.param(0, 40, 40, id="idle: the target"),
        pytest.param(20, 40, 70, id="60 * 20/40 + 40"),
        pytest.param(40, 40, 100, id="at the target"),
        pytest.param(40.1, 40, 40, id="just above: 40 * 59.9/60 = 39.93"),
        pytest.param(70, 40, 20, id="40 * 30/60"),
        pytest.param(150, 40, 0, id="more than full"),
        pytest.param(90, 80, 40, id="another target: 80 * 10/20"),
        pytest.param(100, 100, 100, id="all of it"),
    ],
)
def test_nodes_are_packed_up_to_the_target(load: float, target: float, score: float) -> None:
    node = loaded_node(free_cpu=4000 - 40 * load)
    plugin = make(TargetLoadPacking, targetUtilization=target)
    assert run_score(plugin, pod(limit="0"), node) == {"node": score}


@pytest.mark.parametrize(
    ("placed", "millicores"),
    [
        pytest.param(pod(limit="300m", request="100m"), 300, id="the limit"),
        pytest.param(pod(request="200m"), 300, id="1.5 times the request"),
        pytest.param(pod(), 1000, id="neither"),
        pytest.param(pod(limit="0", overhead={"cpu": "40m"}), 40, id="overhead"),
        pytest.param(
            pod(limit="0", init_containers=[Container()]), 0, id="init containers do not count"
        ),
    ],
)
def test_the_pod_is_taken_to_use(placed: Pod, millicores: int) -> None:
    # Far below the target of 100 % the score is the expected load turned round.
    node = loaded_node(free_cpu=4000)
    (score,) = run_score(make(TargetLoadPacking, targetUtilization=50), placed, node).values()
    assert score == int(50 * millicores / 2000 + 50 + 0.5)


def test_what_is_taken_for_granted_is_an_argument() -> None:
    usual: dict[str, Any] = {"targetUtilization": 50, "defaultRequests": {"cpu": "400m"}}
    running = make(TargetLoadPacking, defaultRequestsMultiplier=2, **usual)
    node = loaded_node(free_cpu=4000)
    assert run_score(running, pod(), node) == {"node": 60}  # 400m: 50 * 10/50 + 50
    assert run_score(running, pod(request="400m"), node) == {"node": 70}  # 800m


@pytest.mark.parametrize(
    ("kind", "wrong", "problem"),
    [
        (TargetLoadPacking, {"targetUtilization": 0}, "args.targetUtilization"),
        (TargetLoadPacking, {"targetUtilization": 101}, "args.targetUtilization"),
        (TargetLoadPacking, {"defaultRequests": {"cpu": "much"}}, "args.defaultRequests"),
        (TargetLoadPacking, {"defaultRequestsMultiplier": 0.5}, "args.defaultRequestsMultiplier"),
        (SafeOverload, {"safeUtilization": 101}, "args.safeUtilization"),
        (SafeOverload, {"safePercentile": 0.5}, "args.safePercentile"),
        (
            CongestionFactor,
            {"query": "node_load5"},
            r"query and prometheus\.address need each other",
        ),
    ],
)
def test_mistakes_are_refused(kind: type[ScorePlugin], wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make(kind, **wrong)


def annotated(factor: str | None, **args: Any) -> float:
    node = make_node(annotations={} if factor is None else {"congestion-factor": factor})
    return run_score(make(CongestionFactor, **args), make_pod(), node)["node"]


@pytest.mark.parametrize(
    ("factor", "score"),
    [("0", 100), ("25", 75), ("100", 0), ("250", 0), ("-5", 100), (None, 100), ("much", 100)],
)
def test_scores_fall_with_the_factor(factor: str | None, score: float) -> None:
    assert annotated(factor) == score


def test_the_maximum_and_the_annotation_are_arguments() -> None:
    assert annotated("2.5", maximum=10) == 75
    node = make_node(annotations={"example.com/busy": "60"})
    busy = make(CongestionFactor, annotation="example.com/busy")
    assert run_score(busy, make_pod(), node) == {"node": 40}


async def test_the_factor_can_be_a_query() -> None:
    async with fake_prometheus() as prometheus:
        prometheus.measures({"factor": {"a": 40}})
        source = {"address": prometheus.address}
        plugin = make(CongestionFactor, query="node_load5", prometheus=source)
        nodes = make_node("a", annotations={"congestion-factor": "90"}), make_node("b")
        scores = await asyncio.to_thread(run_score, plugin, make_pod(), *nodes)
    assert scores == {"a": 60, "b": 100}
    assert "max by (node) ((node_load5))" in prometheus.queries[0]


@pytest.mark.parametrize(
    ("free", "deviation", "margin", "sensitivity", "score"),
    [  # millicores of 4000; 100 * (1 - (mean + min(margin * deviation ** (1/sensitivity), 1)) / 2)
        pytest.param(4000, 0, 1, 1, 95, id="idle: (0.1 + 0) / 2"),
        pytest.param(2400, 400, 1, 1, 70, id="(0.5 + 0.1) / 2"),
        pytest.param(2400, 400, 1, 2, 59, id="(0.5 + 0.3162) / 2"),
        pytest.param(2400, 400, 2, 1, 65, id="(0.5 + 0.2) / 2"),
        pytest.param(2400, 400, 20, 1, 25, id="(0.5 + 1) / 2"),
        pytest.param(2400, 400, 0, 1, 75, id="(0.5 + 0) / 2"),
        pytest.param(0, 4000, 1, 1, 0, id="full"),
        pytest.param(2390, 0, 1, 1, 75, id="74.875 is rounded"),
    ],
)
def test_low_and_steady_load_is_preferred(
    free: float, deviation: float, margin: float, sensitivity: float, score: float
) -> None:
    args = LoadVariationRiskBalancing.Args(
        safe_variance_margin=margin, safe_variance_sensitivity=sensitivity
    )
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    assert run_score(LoadVariationRiskBalancing(args), POD, node) == {"node": score}


def committed(name: str, request: int, limit: int, node: str = "") -> Pod:
    resources = Resources(requests={"cpu": f"{request}m"}, limits={"cpu": f"{limit}m"})
    return make_pod(name, node=node, containers=[Container(resources=resources)])


def score(
    placed: Pod, pods: Sequence[Pod] = (), free: float = 4000, deviation: float = 0, **args: Any
) -> float:
    node = loaded_node(free_cpu=free, std_cpu=deviation, free_memory=16 * GIB)
    return run_score(make(LowRiskOverCommitment, **args), placed, node, pods=pods)["node"]


LIMITS_ONLY: dict[str, Any] = {"riskLimitWeights": {"cpu": 1, "memory": 1}}
LOAD_ONLY: dict[str, Any] = {"riskLimitWeights": {"cpu": 0, "memory": 0}}


@pytest.mark.parametrize(
    ("request_", "limit", "on_node", "expected"),
    [
        pytest.param(1000, 2000, (1000, 2000), 100, id="limits fit"),
        pytest.param(1000, 4000, (1000, 2000), 50, id="(6000-4000)/(6000-2000)"),
        pytest.param(2000, 4000, (3000, 4000), 0, id="requests fill it: (8000-4000)/(8000-4000)"),
        pytest.param(5000, 0, (0, 0), 0, id="requests count as limits where they are higher"),
    ],
)
def test_limits_that_promise_too_much_are_a_risk(
    request_: int, limit: int, on_node: tuple[int, int], expected: float
) -> None:
    others = [committed("other", *on_node, node="node")]
    assert score(committed("new", request_, limit), others, **LIMITS_ONLY) == pytest.approx(
        expected
    )


def test_load_beyond_what_is_requested_is_a_risk() -> None:
    # Mean 0.5, deviation 0.1 * sqrt(1): beta(12, 12). F(0.5) = 0.5.
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [committed("other", 2000, 6000, node="node")]
    found = score(committed("new", 100, 100), others, **load, **LOAD_ONLY)
    assert found == pytest.approx(50)


def test_load_beyond_the_limits_cannot_be() -> None:
    # As above, but limits of 0.75 bound it: F(0.5) / F(0.75) = 0.5 / 0.99683
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [committed("other", 2000, 3000, node="node")]
    found = score(committed("new", 100, 100), others, **load, **LOAD_ONLY)
    assert 50 < found < 51


def test_smoothing_widens_the_variation() -> None:
    others = [committed("other", 3000, 6000, node="node")]
    load: dict[str, Any] = {"free": 2000, "deviation": 200}
    narrow = score(committed("new", 1, 1), others, smoothingWindowSize=1, **load, **LOAD_ONLY)
    usual = score(committed("new", 1, 1), others, **load, **LOAD_ONLY)
    assert narrow > usual > 50


def test_more_variation_than_possible_counts_as_the_most_that_is() -> None:
    others = [committed("other", 3000, 6000, node="node")]
    huge = score(committed("new", 1, 1), others, free=2000, deviation=4000, **LOAD_ONLY)
    assert huge == pytest.approx(50, abs=1)  # all or nothing


def test_both_risks_count_by_their_weights() -> None:
    others = [committed("other", 1000, 2000, node="node")]
    new = committed("new", 1000, 4000)  # a risk of limits of 0.5
    # An idle node has no risk of load; a full one with few requests has all of it.
    assert score(new, others) == pytest.approx(75)
    assert score(new, others, free=0) == pytest.approx(25)
    weights = {"cpu": 0.2, "memory": 0.2}
    assert score(new, others, riskLimitWeights=weights) == pytest.approx(90)


def test_pods_without_requests_and_limits_are_skipped() -> None:
    assert run_score(LowRiskOverCommitment(), make_pod(), loaded_node(free_cpu=0)) == {}


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "original"),
    [  # millicores of 4000; the original's score, 0..10
        (2500, 400, 500, 6),
        (1000, 400, 500, 4),
        (1000, 100, 500, 5),
        (600, 800, 200, 3),
        (4000, 0, 0, 10),
        (0, 0, 500, 5),
        (2000, 1990, 0, 4),
    ],
)
def test_low_and_steady_load_is_preferred_as_in_the_original(
    free: float, deviation: float, demand: int, original: int
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    (score,) = run_score(SafeBalance(), pod, node).values()
    assert math.floor(score / 10 + 0.5) == original
    mean, share = min((4000 - free + demand) / 4000, 1), deviation / 4000
    assert score == pytest.approx(100 * (1 - (mean + math.sqrt(share)) / 2))


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "risk", "original"),
    [  # millicores of 4000; the risk to use more than 90 %; the original's score, 0..10
        (2500, 400, 500, 0.000000, 9),
        (1000, 400, 500, 0.499682, 0),
        (1000, 100, 500, 0.158015, 2),
        (600, 800, 200, 0.765312, 0),
        (4000, 0, 0, 0, 10),
        (0, 0, 500, 1, 0),
        (2000, 1990, 0, 0.494514, 0),
    ],
)
def test_scores_fall_with_the_risk_as_in_the_original(
    free: float, deviation: float, demand: int, risk: float, original: int
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    (score,) = run_score(
        SafeOverload(), pod, loaded_node(free_cpu=free, std_cpu=deviation)
    ).values()
    assert score // 10 == original
    assert score == pytest.approx(100 * (1 - math.sqrt(min(risk / 0.3, 1))), abs=0.2)


def test_the_limits_are_arguments() -> None:
    def scored(node: NodeManifest, **args: Any) -> float:
        return run_score(make(SafeOverload, **args), OVERLOADING, node)["node"]

    node = loaded_node(free_cpu=1500, std_cpu=400)  # mean 0.75 with the pod
    strict, lower = scored(node, safePercentile=10), scored(node, safeUtilization=76)
    assert scored(node) > strict > lower == 0
    assert scored(node, safePercentile=0) == 0
    assert scored(loaded_node(free_cpu=3000), safePercentile=0) == 100
    forecast = loaded_node(free_cpu=3000, std_cpu=0, forcasted_free_cpu="-20000")
    assert scored(forecast) == 0  # 0.8 * 3000 - 0.2 * 20000 is less than nothing
    assert scored(forecast, safeForecastWeight=0) == 100


NEW = committed("new", 100, 100)


@pytest.mark.parametrize(
    ("plugin", "placed", "node", "score"),
    [
        (LoadVariationRiskBalancing(), POD, {"free_memory": 8 * GIB}, 75),
        (
            LoadVariationRiskBalancing(),
            POD,
            {"free_cpu": None, "free_memory": 8 * GIB, "std_memory": 4 * GIB},
            63,
        ),
        (make(LowRiskOverCommitment, **LOAD_ONLY), NEW, {"free_memory": 0}, 0),
        (SafeBalance(), make_pod(), {"free_memory": 8 * GIB}, 75),
        (SafeOverload(), OVERLOADING, {"free_memory": 15 * GIB}, 100),
        (SafeOverload(), OVERLOADING, {"free_memory": GIB // 2}, 0),
    ],
)
def test_the_busier_resource_counts_and_one_is_enough(
    plugin: ScorePlugin, placed: Pod, node: dict[str, Any], score: float
) -> None:
    assert run_score(plugin, placed, loaded_node(**{"free_cpu": 4000, **node})) == {"node": score}


@pytest.mark.parametrize(
    ("plugin", "placed", "idle", "full", "new"),
    [
        (TargetLoadPacking(), pod(limit="0"), 40, 0, 20),
        (LoadVariationRiskBalancing(), POD, 95, 50, 72.5),
        (LowRiskOverCommitment(), NEW, 100, 50, 75),
        (SafeBalance(), make_pod(), 100, 50, 75),
        (SafeOverload(), OVERLOADING, 100, 0, 50),
        (make(SafeOverload, onMissing="worst"), OVERLOADING, 100, 0, 0),
        (CongestionFactor(), make_pod(), 90, 20, 100),
        (make(CongestionFactor, onMissing="neutral"), make_pod(), 90, 20, 55),
        (make(CongestionFactor, onMissing="worst"), make_pod(), 90, 20, 0),
    ],
)
def test_nodes_without_measurements_get_what_the_policy_says(
    plugin: ScorePlugin, placed: Pod, idle: float, full: float, new: float
) -> None:
    nodes = (
        loaded_node("idle", free_cpu=4000, congestion_factor="10"),
        loaded_node("full", free_cpu=0, congestion_factor="80"),
        loaded_node("new"),
    )
    expected = pytest.approx({"idle": idle, "full": full, "new": new})
    assert run_score(plugin, placed, *nodes) == expected


MEASURING = [kind for kind in BUILT_INS if "prometheus" in kind.Args.__struct_fields__]
OTHERS = {"CongestionFactor": {"query": "node_load5"}, "NodeCost": {"query": "price"}}


@pytest.mark.parametrize("on_missing", ["neutral", "worst", "fail"])
@pytest.mark.parametrize("kind", MEASURING, ids=lambda kind: kind.name)
def test_a_silent_prometheus_is_noted_and_a_failure_unless_all_are_the_worst(
    kind: type[ScorePlugin], on_missing: str
) -> None:
    assert len(MEASURING) == 8
    silent = {"prometheus": {"address": "http://127.0.0.1:1"}, **OTHERS.get(kind.name, {})}
    plugin = make(kind, onMissing=on_missing, **silent)
    failed = True
    with suppress(PluginFailedError):
        run_score(plugin, OVERLOADING, loaded_node("a", free_cpu=1000), loaded_node("b"))
        failed = False
    assert failed == (on_missing != "worst")
    assert plugin.latest_note.startswith(
        f"2 of 2 nodes have no measurements (onMissing: {on_missing}); cannot query Prometheus "
    )


def test_nodes_without_a_factor_are_noted_unless_they_are_idle() -> None:
    def noted(plugin: ScorePlugin) -> str:
        nodes = make_node("a", annotations={"congestion-factor": "50"}), make_node("b")
        run_score(plugin, POD, *nodes)
        return plugin.latest_note

    assert noted(CongestionFactor()) == ""
    assert noted(make(CongestionFactor, onMissing="neutral")) == (
        "1 of 2 nodes have no measurements, such as b (onMissing: neutral)"
    )
    silent = make(CongestionFactor, query="x", prometheus={"address": "http://127.0.0.1:1"})
    assert noted(silent).startswith(
        "2 of 2 nodes have no measurements (onMissing: idle); cannot query Prometheus "
    )
    assert run_score(silent, POD, make_node()) == {"node": 100}


BUSY = ("busy-1", "busy-2", "busy-3")


def cluster() -> Snapshot:
    """Return three nodes that use a good half, and one that was idle when it was measured."""
    snapshot = Snapshot()
    for row, name in enumerate((*BUSY, "idle")):
        share = 0.05 if name == "idle" else 0.55
        load: dict[str, Any] = {"free_cpu": 8000 * (1 - share), "std_cpu": 800}
        load |= {"free_memory": 32 * GIB * (1 - share), "std_memory": 3 * GIB}
        load |= {"congestion_factor": f"{share * 100}"}
        snapshot.set_node(row, loaded_node(name, cpu="8", memory="32Gi", **load))
    for number in range(30):
        old = make_pod(f"old-{number}", requests={"cpu": "400m", "memory": "1600Mi"})
        snapshot.place_pod(number % 3, old, since=LONG_AGO)
    return snapshot


async def place_twenty(plugin: ScorePlugin) -> Counter[str]:
    """Place pods one after another, each on the best node, with the scorer's engine."""
    snapshot = cluster()
    profile = Profile(name="moorage", plugins=(EnabledPlugin(plugin=plugin),))
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
        (SafeBalance, {}),
        (CongestionFactor, {"inFlight": "step"}),
        # 4.95 MB/s for the pods of the idle node and 30 others make 500 kB/s for each new one.
        (NetworkTraffic, {}),
    ],
)
async def test_twenty_pods_between_two_measurements_do_not_all_go_to_the_idle_node(
    kind: type[ScorePlugin], args: dict[str, Any]
) -> None:
    async with fake_prometheus() as prometheus:
        prometheus.measures({"traffic": {**dict.fromkeys(BUSY, 5e6), "idle": 0.0}})
        if kind is NetworkTraffic:
            hourly = {"address": prometheus.address, "interval": "1h", "maxAge": "1h"}
            args = {"prometheus": hourly}
        async with running(plugin := make(kind, **args)):
            places = await place_twenty(plugin)
        async with running(blind := make(kind, **{**args, "inFlight": "off"})):
            assert await place_twenty(blind) == {"idle": 20}
    # Half of a node is worth ten pods: those go to the idle one, and the rest to all four.
    assert 10 <= places["idle"] <= 15
    assert len(places) == 4


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
        free: dict[str, Any] = {"free_cpu": 4000 - cpu, "free_memory": 16 * GIB - memory}
        return loaded_node(**free, std_cpu=300, std_memory=2 * GIB)

    resources = Resources(
        requests={"cpu": "800m", "memory": "3Gi"}, limits={"cpu": "1200m", "memory": "8Gi"}
    )
    none = {"cpu": "0", "memory": "0"}
    parts = [Container(resources=resources)]
    uses = make_pod("new", requests=none, containers=parts, node="node")
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
        (30, [{"limit": "1"}], 0),  # excess utilisation
        (0, [{"limit": "100m", "request": "10m"}], 55),  # 10 %: 60 * 10/40 + 40
        (10, [{"request": "100m"}], 78),  # 25 %: 60 * 25/40 + 40 = 77.5
        (10, [{"limit": "200m"}, {"request": "200m"}], 27),  # 60 %
        (0, [{}], 0),  # 100 %: 40 * 0/60
    ],
)
def test_agrees_with_trimaran(measured: float, new: list[dict[str, str]], score: float) -> None:
    node = loaded_node("node", cpu="1", free_cpu=1000 - 10 * measured)
    there = [pod(name=f"p{i}", node="node", **each) for i, each in enumerate(new)]
    plugin, nothing = make(TargetLoadPacking, inFlight="step"), make_pod(requests={"cpu": "0"})
    assert run_score(plugin, nothing, node, new_pods=there) == {"node": score}
