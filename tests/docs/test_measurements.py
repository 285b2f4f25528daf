"""What the page about measurements says is so."""

import asyncio
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np

from moorage import ScorePlugin
from moorage.measurements import (
    MISSING,
    PRESETS,
    Expected,
    InFlight,
    InFlightArguments,
    OnMissing,
    Preset,
)
from moorage.snapshot import Snapshot
from moorage.snapshot.placements import Placements
from moorage.testing import make_node, make_nodes, make_pod, run_score, running
from moorage_host.plugins.registry import Registry
from services.scorer.plugins import BUILT_INS
from tests.fake_prometheus import fake_prometheus
from tools.docs.pages import DOCS, blocks

PAGE = (DOCS / "how-to" / "plugins" / "measurements.md").read_text()

IN_FLIGHT = PAGE.partition("\n## Pods that are not measured yet\n")[2].partition("\n## ")[0]


def first_cells(heading: str) -> list[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w-]+)` \|", section, re.M)


def test_every_preset_is_listed_with_its_label() -> None:
    assert set(first_cells("How Prometheus names nodes")) == set(get_args(Preset))
    for preset, layout in PRESETS.items():
        assert re.search(rf"^\| `{preset}` \| `{layout.label}`", PAGE, re.M)


def test_every_choice_about_missing_measurements_is_listed() -> None:
    assert first_cells("When measurements are missing") == ["onMissing", *get_args(OnMissing)]
    assert f"is {MISSING:g}." in PAGE


def test_the_plugins_of_the_page_exist() -> None:
    plugins = {name for name in first_cells("Load") if name[0].isupper()}
    assert plugins < {kind.name for kind in BUILT_INS}


def test_what_becomes_of_pods_that_are_not_measured_yet_is_listed() -> None:
    choices = get_args(get_type_hints(InFlightArguments)["in_flight"])
    named = dict(re.findall(r"^\| (`\w+`.*?) \|.*\| `(\w+)` \|$", IN_FLIGHT, re.M))
    listed = {name: default for names, default in named.items() for name in _quoted(names)}
    measuring = {kind for kind in BUILT_INS if issubclass(kind.Args, InFlightArguments)}
    assert listed == {kind.name: kind.Args.__struct_defaults__[0] for kind in measuring}
    assert re.findall(r"^\| `(\w+)` \| (?:the part|all|nothing)", IN_FLIGHT, re.M) == [*choices]


def test_the_example_of_a_pod_that_is_not_measured_yet_is_right() -> None:
    snapshot, clock = Snapshot(), 1000.0
    snapshot.placements = Placements(lambda: clock)
    snapshot.set_node(0, make_node())
    snapshot.place_pod(0, make_pod(requests={"cpu": "1"}), since=clock - 8 * 60)
    cpu = Expected("cpu", lambda pod: pod.requests["cpu"])
    on = InFlight(InFlightArguments(), 15 * 60).on(snapshot.nodes(), cpu, age=30, lag=15 * 60 / 6)
    assert f"{on[0]:.0f}m are\nadded" in PAGE or f"{on[0]:.0f}m are added" in PAGE


async def test_the_plugin_of_the_page_prefers_idle_disks(tmp_path: Path) -> None:
    found = _shown(tmp_path, "idle_disks.py", "IdleDisks")
    nodes = [make_node(name) for name in ("idle", "busy", "new")]
    async with fake_prometheus() as prometheus:
        prometheus.measures({"busy": {"idle": 0.1, "busy": 1}})
        plugin = found(found.Args(prometheus=prometheus.settings(interval="1h", max_age="1h")))
        async with running(plugin):
            scores = await asyncio.to_thread(run_score, plugin, make_pod(), *nodes)
            note = plugin.latest_note
            raw = plugin.score(make_pod(), make_nodes(*nodes))
    assert scores == {"idle": 90, "busy": 0, "new": 45}
    assert np.asarray(raw)[-1] == MISSING
    assert note == "1 of 3 nodes have no measurements, such as new (onMissing: neutral)"


def _shown(folder: Path, file: str, name: str) -> type[Any]:
    """Return the plugin that a page shows as a file."""
    (block,) = (b for b in blocks("python") if b.text.startswith(f"# {file}"))
    (folder / file).write_text(block.text)
    registry = Registry(ScorePlugin)
    registry.add_path(folder)
    found = registry.get(name)
    assert found is not None
    return found.kind


def _quoted(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)
