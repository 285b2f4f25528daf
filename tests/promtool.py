"""Has Prometheus' own promtool evaluate queries on made-up series."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.needs import needed


def check(folder: Path, series: Mapping[str, str], tests: Sequence[Mapping[str, object]]) -> None:
    """Evaluate expressions on series with a reading each minute; fail if one is not as expected."""
    promtool = needed("promtool")
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    group = {"interval": "1m", "input_series": inputs, "promql_expr_test": tests}
    file = folder / "tests.yaml"  # JSON is YAML
    file.write_text(json.dumps({"evaluation_interval": "1m", "tests": [group]}))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def close_to(
    query: str, expected: float, tolerance: float, minute: int = 30, labels: str = '{node="a"}'
) -> dict[str, object]:
    """Expect one sample, about a number: ranges have one reading more before Prometheus 3."""
    return {
        "expr": f"abs(({query}) - {expected}) <= bool {tolerance}",
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": labels, "value": 1}],
    }


def nothing(query: str, minute: int) -> dict[str, object]:
    """Expect no sample."""
    return {"expr": query, "eval_time": f"{minute}m", "exp_samples": []}
