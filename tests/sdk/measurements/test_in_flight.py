from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Nodes, Pod, Scores
from moorage.measurements import Expected, InFlight, InFlightArguments
from moorage.measurements.load import Load, LoadArguments, LoadMeter, Resource
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import Placements
from moorage.testing import make_pod
from moorage_host.policy.checks import check_arguments
from tests.annotated import loaded_node

CPU = Expected("test.cpu", lambda pod: pod.requests["cpu"])
MIB = 1024**2
WINDOW = 900.0


@dataclass
class Clock:
    now: float = 5000.0

    def __call__(self) -> float:
        return self.now


def cluster(*ages: float, pod: Pod | None = None, **annotations: str) -> Nodes:
    """Return a node with pods of so many seconds, and one without."""
    annotations = {"free_cpu": "4000", "free_memory": str(16 * 1024 * MIB), **annotations}
    snapshot, clock = Snapshot(), Clock()
    snapshot.placements = Placements(clock)
    for row, name in enumerate(("busy", "other")):
        snapshot.set_node(row, loaded_node(name, **annotations))
    for number, age in enumerate(ages):
        made = pod or make_pod(f"p{number}", requests={"cpu": "100m"})
        snapshot.place_pod(0, made, since=clock.now - age)
    return snapshot.nodes()


def missing(
    mode: str, *ages: float, sampled: float | Scores = 0, window: float = WINDOW, lag: float = 0
) -> float:
    args = check_arguments({"inFlight": mode}, InFlightArguments, "args")
    on = InFlight(args, window).on(cluster(*ages), CPU, age=sampled, lag=lag)
    assert on[1] == 0
    return float(on[0])


@pytest.mark.parametrize(
    ("placed", "sampled", "counts"),
    [
        pytest.param(0, 0, True, id="just now"),
        pytest.param(10, 50, True, id="after the sample"),
        pytest.param(50, 50, True, id="with the sample"),
        pytest.param(59, 0, True, id="less than a minute before the sample"),
        pytest.param(60, 0, False, id="a minute before"),
        pytest.param(109, 50, True, id="less than a minute before an older sample"),
        pytest.param(110, 50, False, id="a minute before an older sample"),
    ],
)
def test_a_step_is_where_trimaran_has_it(placed: float, sampled: float, counts: bool) -> None:
    assert missing("step", placed, sampled=sampled) == (100 if counts else 0)
    assert missing("step", placed, sampled=sampled, lag=1000) == (100 if counts else 0)


@given(
    st.floats(0, 1500), st.floats(0, 300), st.floats(1, 1200), st.sampled_from((0.0, 60.0, 150.0))
)
def test_an_average_is_what_a_mean_over_the_window_leaves_out(
    placed: float, sampled: float, window: float, lag: float
) -> None:
    # The sample knows of the 1200 s (at most) before its time and the delays, in each of which the
    # pod uses its share, once it is there.
    instants = -(sampled + 60 + lag) - (np.arange(2000) + 0.5) * window / 2000
    shown = (instants > -placed).mean()
    assert missing("average", placed, sampled=sampled, window=window, lag=lag) == pytest.approx(
        100 * (1 - shown), abs=0.1
    )


def test_measurements_that_never_came_miss_nothing() -> None:
    assert missing("average", 0, sampled=np.inf) == missing("step", 0, sampled=np.inf) == 0


def test_each_node_may_have_been_measured_at_another_time() -> None:
    args = InFlightArguments(in_flight="step", reporting_interval="0s")
    on = InFlight(args).on(cluster(30), CPU, age=np.array([20.0, 90.0]))
    assert on.tolist() == [0, 0]
    on = InFlight(args).on(cluster(30), CPU, age=np.array([40.0, 0.0]))
    assert on.tolist() == [100, 0]


def test_a_share_is_what_falls_to_the_pods_that_the_measurements_show() -> None:
    step = InFlight(InFlightArguments(in_flight="step"))
    nodes = cluster(0, 1, 1000, 2000)  # two of four are missing

    def measure(some: Nodes) -> Scores:
        return np.array([300.0, 500.0])[some.rows]

    # 800 for two pods, so 400 for each of the missing
    assert step.with_shares(nodes, measure, age=0).tolist() == [300 + 2 * 400, 500]
    assert step.with_shares(nodes[:1], measure, age=0).tolist() == [300 + 2 * 400]

    def unknown(some: Nodes) -> Scores:
        return np.array([300.0, np.nan])[some.rows]

    shares = step.with_shares(nodes, unknown, age=0)
    assert shares[0] == 300 + 2 * 150
    assert np.isnan(shares[1])
    assert step.with_shares(cluster(0), measure, age=0).tolist() == [300, 500]  # none is shown
    assert step.with_shares(cluster(1000), measure, age=0).tolist() == [300, 500]


def annotated(resource: Resource, *ages: float, pod: Pod | None = None, **args: object) -> Load:
    meter = LoadMeter(check_arguments(args, LoadArguments, "args"))
    return meter.load(cluster(*ages, pod=pod), resource)


def test_load_counts_what_pods_request_and_idle_ones_as_small() -> None:
    asks = make_pod(requests={"cpu": "300m", "memory": "50Mi"})
    assert annotated("cpu", 0, pod=asks).used.tolist() == [300, 0]
    assert annotated("memory", 0, pod=asks).used.tolist() == [50 * MIB, 0]
    assert annotated("cpu", 0, pod=make_pod()).used.tolist() == [100, 0]
    assert annotated("memory", 0, pod=make_pod()).used.tolist() == [200 * MIB, 0]
    assert annotated("cpu", 0, pod=asks, inFlight="off").used.tolist() == [0, 0]


def test_rates_of_cpu_lie_behind_by_half_their_time() -> None:
    # A window of 15 minutes, with rates over 5 of them; after that, half of the window.
    assert annotated("cpu", 60 + 150).used[0] == 100
    assert annotated("cpu", 60 + 150 + 450).used[0] == pytest.approx(50)
    assert annotated("cpu", 60 + 150 + 900).used[0] == 0
    assert annotated("memory", 60 + 450).used[0] == pytest.approx(100 * MIB)
    assert annotated("cpu", 60, window="3m").used[0] == 100
    assert annotated("cpu", 60 + 30 + 90, window="3m").used[0] == pytest.approx(50)
    assert annotated("cpu", 30 + 150 + 450, reportingInterval="30s").used[0] == pytest.approx(50)
