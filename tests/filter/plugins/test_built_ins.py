"""LicenseSeats, MaintenanceWindows, NodeGroup and SafeOverload."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage import PluginFailedError, Pod, Rejection
from moorage.measurements import PrometheusSettings
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, record_retries, run_filter, running, time_is
from moorage_host.policy.checks import check_arguments
from services.filter.plugins.license_seats import TAKEN, LicenseSeats
from services.filter.plugins.maintenance_windows import (
    NOW,
    SOON,
    UNREADABLE,
    MaintenanceWindows,
    windows_of,
)
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.safe_overload import SafeOverload
from tests.annotated import loaded_node

KEY = "example.com/license"
NODES = (make_node("n1"), make_node("n2"))
PASS = {"n1": None, "n2": None}
FULL = {"n1": TAKEN, "n2": TAKEN}


def user(name: str, license_: str = "cad", node: str = "", namespace: str = "default") -> Pod:
    return make_pod(name, labels={KEY: license_}, node=node, namespace=namespace)


def seats(**args: object) -> LicenseSeats:
    return LicenseSeats(LicenseSeats.Args(**args))  # type: ignore[arg-type]


def test_a_pod_runs_while_a_seat_is_free_in_the_whole_cluster() -> None:
    plugin = seats(seats={"cad": 2})
    first, second = user("a", node="n1"), user("b", node="n2", namespace="other")
    assert run_filter(plugin, user("c"), *NODES, pods=[first]) == PASS
    assert run_filter(plugin, user("c"), *NODES, pods=[first, second]) == FULL
    assert plugin.latest_note == "2 of 2 seats of cad are taken"
    assert plugin.wants_claim(user("c"))


def test_each_value_of_the_label_has_seats_of_its_own() -> None:
    plugin = seats(seats={"cad": 1})
    taken = [user("a", node="n1")]
    assert run_filter(plugin, user("b", "sim"), *NODES, pods=taken) == PASS
    assert run_filter(plugin, make_pod("plain"), *NODES, pods=taken) == PASS
    assert not plugin.wants_claim(make_pod("plain"))
    assert run_filter(seats(other_seats=0), user("a", "new"), *NODES) == FULL


def test_each_namespace_may_have_seats_of_its_own() -> None:
    plugin = seats(seats={"cad": 1}, namespaced=True)
    other = user("a", node="n1", namespace="other")
    assert run_filter(plugin, user("b"), *NODES, pods=[other]) == PASS
    assert run_filter(plugin, user("b"), *NODES, pods=[user("a", node="n1")]) == FULL


@pytest.mark.parametrize("args", [{"seats": {"cad": -1}}, {"otherSeats": -2}])
def test_a_limit_without_sense_is_refused(args: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        msgspec.convert(args, LicenseSeats.Args)


WINDOWS_KEY = "example.com/maintenance"
WINDOW = "2026-11-27T22:00Z/2026-11-28T02:00Z"


def node(text: str = WINDOW) -> NodeManifest:
    return make_node("n1", annotations={WINDOWS_KEY: text})


def windows(**args: str) -> MaintenanceWindows:
    return MaintenanceWindows(MaintenanceWindows.Args(**args))


@pytest.mark.parametrize(
    ("time", "runs", "verdict"),
    [
        ("2026-11-27T20:59Z", None, None),
        ("2026-11-27T21:01Z", None, SOON),
        ("2026-11-27T21:01Z", "30m", None),
        ("2026-11-27T12:00Z", "12h", SOON),
        ("2026-11-27T21:01Z", "soon", SOON),  # as without
        ("2026-11-27T22:00Z", "1s", NOW),
        ("2026-11-28T01:59Z", "1s", NOW),
        ("2026-11-28T02:00Z", None, None),
    ],
)
def test_a_pod_ends_before_the_window_or_waits(
    time: str, runs: str | None, verdict: Rejection | None
) -> None:
    pod = make_pod(annotations={"example.com/duration": runs} if runs else {})
    with time_is(time):
        assert run_filter(windows(), pod, node()) == {"n1": verdict}


def test_any_of_several_windows_counts_and_times_have_zones() -> None:
    text = "2026-11-01T00:00Z/2026-11-02T00:00Z, 2026-11-27T23:00+01:00/2026-11-28T03:00+01:00"
    with time_is("2026-11-27T22:00Z"):
        assert run_filter(windows(), make_pod(), node(text)) == {"n1": NOW}
        assert run_filter(windows(), make_pod(), make_node("n1")) == {"n1": None}


@pytest.mark.parametrize(
    "text", ["tonight", "2026-11-27T22:00Z", f"{WINDOW},", "2026-11-28/2026-11-27"]
)
def test_a_node_whose_windows_cannot_be_read_gets_no_pod(text: str) -> None:
    assert run_filter(windows(), make_pod(), node(text)) == {"n1": UNREADABLE}
    with pytest.raises(ValueError, match=r"START/END|ends before|isoformat"):
        windows_of(text)


def test_windows_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_text(f"n1: {WINDOW}\n")
    with time_is("2026-11-27T23:00Z"):
        verdicts = run_filter(windows(file=str(file)), make_pod(), make_node("n1"), make_node("n2"))
    assert verdicts == {"n1": NOW, "n2": None}


async def test_pods_are_tried_again_when_a_window_ends_or_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_text("{}")
    plugin = windows(file=str(file))
    retries = record_retries(plugin)
    async with running(plugin):
        with time_is("2026-11-27T23:00Z"):
            await asyncio.to_thread(run_filter, plugin, make_pod(), node())
            plugin._look()
        assert retries == []
        with time_is("2026-11-28T02:00Z"):
            plugin._look()
            plugin._look()
        assert retries == ["a maintenance window has ended"]
        file.write_text(f"n1: {WINDOW}\n")
        os.utime(file, (1, 1))
        plugin._look()
        assert retries[1:] == ["the file of maintenance windows has changed"]


NO_LABEL = Rejection("node does not have required label", unresolvable=True)
OTHER = Rejection("nodeGroup of pod and node don't match", unresolvable=True)


@pytest.mark.parametrize(
    ("pod_labels", "node_labels", "verdict"),
    [
        pytest.param({}, {}, None, id="no group, anywhere"),
        pytest.param({}, {"nodeGroup": "1"}, None, id="no group, onto a group's node"),
        pytest.param({"nodeGroup": "1"}, {}, NO_LABEL, id="node without group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "1"}, None, id="same group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "2"}, OTHER, id="other group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "01"}, OTHER, id="compared as text"),
        pytest.param({"nodeGroup": ""}, {"nodeGroup": ""}, None, id="the empty group is a group"),
        pytest.param({"nodeGroup": ""}, {}, NO_LABEL, id="the empty group is not no group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": ""}, OTHER, id="nor is it any group"),
    ],
)
def test_pods_of_a_group_stay_on_its_nodes(
    pod_labels: dict[str, str], node_labels: dict[str, str], verdict: Rejection | None
) -> None:
    node = make_node("n1", labels=node_labels)
    assert run_filter(NodeGroup(), make_pod(labels=pod_labels), node) == {"n1": verdict}


def test_the_label_can_be_another() -> None:
    plugin = NodeGroup(NodeGroup.Args(label="example.com/team"))
    pod = make_pod(labels={"example.com/team": "red", "nodeGroup": "1"})
    nodes = make_node("n1", labels={"example.com/team": "red"}), make_node("n2")
    assert run_filter(plugin, pod, *nodes) == {"n1": None, "n2": NO_LABEL}


OVERLOAD = Rejection("node would likely be overloaded", cured_by="capacity")
NOT_MEASURED = Rejection("node has no measurements of its load", unresolvable=True)


def plugin(**args: Any) -> SafeOverload:
    return SafeOverload(check_arguments(args, SafeOverload.Args, "args"))


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "accepted"),
    [  # millicores of 4000
        (2500, 400, 500, True),
        (1000, 400, 500, False),
        (1000, 100, 500, True),
        (600, 800, 200, False),
        (4000, 0, 0, True),
        (0, 0, 500, False),
        (2000, 1990, 0, False),
    ],
)
def test_nodes_that_the_pod_would_likely_overload_are_rejected(
    free: float, deviation: float, demand: int, accepted: bool
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    verdicts = run_filter(plugin(), pod, loaded_node(free_cpu=free, std_cpu=deviation))
    assert verdicts == {"node": None if accepted else OVERLOAD}


def test_the_limits_are_arguments() -> None:
    node = loaded_node(free_cpu=1000, std_cpu=100)  # a risk of 0.158
    pod = make_pod(requests={"cpu": "500m"})
    assert run_filter(plugin(safePercentile=15), pod, node) == {"node": OVERLOAD}
    assert run_filter(plugin(safePercentile=16), pod, node) == {"node": None}
    assert run_filter(plugin(safeUtilization=80), pod, node) == {"node": OVERLOAD}


def test_nodes_without_measurements_pass_unless_the_policy_says_otherwise() -> None:
    nodes = loaded_node("full", free_cpu=0), loaded_node("new")
    assert run_filter(plugin(), make_pod(), *nodes) == {"full": OVERLOAD, "new": None}
    assert run_filter(plugin(onMissing="worst"), make_pod(), *nodes) == {
        "full": OVERLOAD,
        "new": NOT_MEASURED,
    }
    with pytest.raises(PluginFailedError, match="there are nodes without measurements"):
        run_filter(plugin(onMissing="fail"), make_pod(), *nodes)


def test_all_nodes_pass_while_prometheus_is_silent_unless_that_is_a_failure() -> None:
    silent = PrometheusSettings(address="http://127.0.0.1:1")
    lenient = SafeOverload(SafeOverload.Args(prometheus=silent))
    assert run_filter(lenient, make_pod(), loaded_node()) == {"node": None}
    strict = SafeOverload(SafeOverload.Args(prometheus=silent, on_missing="fail"))
    with pytest.raises(PluginFailedError, match="cannot query Prometheus"):
        run_filter(strict, make_pod(), loaded_node())


def test_letting_nodes_pass_unseen_or_rejecting_them_leaves_a_note() -> None:
    for on_missing in ("neutral", "worst", "fail"):
        silent = PrometheusSettings(address="http://127.0.0.1:1")
        blind = SafeOverload(SafeOverload.Args(prometheus=silent, on_missing=on_missing))
        with suppress(PluginFailedError):
            run_filter(blind, make_pod(), loaded_node("a"), loaded_node("b"))
        assert blind.latest_note.startswith(
            f"2 of 2 nodes have no measurements (onMissing: {on_missing}); cannot query Prometheus "
        )
    seeing = plugin()
    run_filter(seeing, make_pod(), loaded_node(free_cpu=4000))
    assert seeing.latest_note == ""


def test_pods_that_are_not_measured_yet_count() -> None:
    node = loaded_node("node", free_cpu=2500, std_cpu=100)
    others = [make_pod(f"p{number}", requests={"cpu": "500m"}, node="node") for number in range(4)]
    pod = make_pod(requests={"cpu": "500m"})
    assert run_filter(plugin(), pod, node, new_pods=others[:1]) == {"node": None}
    assert run_filter(plugin(), pod, node, pods=others) == {"node": None}
    assert run_filter(plugin(inFlight="off"), pod, node, new_pods=others) == {"node": None}
    assert run_filter(plugin(), pod, node, new_pods=others) == {"node": OVERLOAD}
