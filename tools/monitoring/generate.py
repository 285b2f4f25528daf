"""Writes the dashboards that the chart installs: `python -m tools.monitoring.generate`."""

import json
from collections.abc import Mapping
from pathlib import Path

from tools.monitoring.dashboards import binding, cycles, overview, processes
from tools.monitoring.dashboards.model import Dashboard
from tools.monitoring.rules import FOLDER

DASHBOARDS = (overview.DASHBOARD, cycles.DASHBOARD, processes.DASHBOARD, binding.DASHBOARD)


def files() -> Mapping[Path, str]:
    """Return the content of each file."""
    return {FOLDER / "dashboards" / f"{each.name}.json": _text(each) for each in DASHBOARDS}


def _text(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.json(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all files."""
    for file, text in files().items():
        file.write_text(text)


if __name__ == "__main__":
    main()
