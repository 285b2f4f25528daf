"""What the page about measurements says is so."""

import asyncio
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from moorage import PluginFailedError, ScorePlugin
from moorage.metrics import MISSING, PRESETS, OnMissing, Preset
from moorage.registry import Registry
from moorage.testing import make_node, make_nodes, make_pod, run_score
from services.scorer.plugins import BUILT_INS
from tests.docs.pages import ROOT, blocks
from tests.fake_prometheus import fake_prometheus

PAGE = (ROOT / "docs" / "measurements.md").read_text()


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
    assert set(first_cells("Load")) < {kind.name for kind in BUILT_INS}


async def test_the_plugin_of_the_page_prefers_idle_disks(tmp_path: Path) -> None:
    (block,) = (b for b in blocks("python") if b.text.startswith("# idle_disks.py"))
    (tmp_path / "idle_disks.py").write_text(block.text)
    registry = Registry(ScorePlugin)
    registry.add_path(tmp_path)
    found = registry.get("IdleDisks")
    assert found is not None
    nodes = [make_node(name) for name in ("idle", "busy", "new")]
    async with fake_prometheus() as prometheus:
        prometheus.measures({"busy": {"idle": 0.1, "busy": 1}})
        plugin = found.kind(found.kind.Args(prometheus=prometheus.settings()))
        assert isinstance(plugin, ScorePlugin)
        with pytest.raises(PluginFailedError, match="has not been started"):
            await asyncio.to_thread(run_score, plugin, make_pod(), *nodes)
        await plugin.start()
        scores = await asyncio.to_thread(run_score, plugin, make_pod(), *nodes)
        raw = plugin.score(make_pod(), make_nodes(*nodes))
        await plugin.stop()
    assert scores == {"idle": 90, "busy": 0, "new": 45}
    assert np.asarray(raw)[-1] == MISSING
