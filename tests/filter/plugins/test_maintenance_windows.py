import asyncio
import os
from pathlib import Path

import pytest

from moorage import Rejection
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, record_retries, run_filter, running, time_is
from services.filter.plugins.maintenance_windows import (
    NOW,
    SOON,
    UNREADABLE,
    MaintenanceWindows,
    windows_of,
)

KEY = "example.com/maintenance"
WINDOW = "2026-11-27T22:00Z/2026-11-28T02:00Z"


def node(text: str = WINDOW) -> NodeManifest:
    return make_node("n1", annotations={KEY: text})


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
