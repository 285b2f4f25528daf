"""Each alert fires when it should, after its time, and none does while an installation is well."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.alert_cases import CASES, Case
from tests.monitoring.chart import ROOT, RULES, alerts
from tests.monitoring.series import MINUTES, WELL, Series
from tests.needs import needed
from tools.manifests.rendering import installed

RUNBOOKS = "docs/reference/runbooks.md"
PAGED = {alert.name for alert in alerts() if alert.severity == "page"}


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Prometheus' own tool."""
    program = needed("promtool")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def unit_tests(folder: Path, groups: Sequence[Mapping[str, Any]]) -> str:
    """Run unit tests of the rules; return what failed."""
    file = folder / "tests.yaml"  # JSON is YAML
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": groups}
    file.write_text(json.dumps(document))
    done = promtool("test", "rules", str(file))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def group(name: str, series: Series, **tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return unit tests on the series of an installation that is well, but for *series*."""
    given = {**WELL, **series}
    inputs = [{"series": key, "values": values} for key, values in given.items() if values]
    return {"name": name, "interval": "1m", "input_series": inputs, **tests}


def firing(alert: str, minute: int, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Expect that an alert fires with these labels, or with None that it does not."""
    expected = []
    if labels is not None:
        every = {"alertname": alert, "alertstate": "firing", **labels}
        text = ",".join(f'{key}="{value}"' for key, value in every.items())
        expected.append({"labels": f"ALERTS{{{text}}}", "value": 1})
    selector = f'ALERTS{{alertname=~"{alert}",alertstate="firing"}}'
    return {"expr": selector, "eval_time": f"{minute}m", "exp_samples": expected}


def test_the_rules_are_well_formed() -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_leaves_the_rules_as_they_are() -> None:
    (rule,) = (each for each in installed("monitoring") if each["kind"] == "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text())


def test_no_alert_fires_while_an_installation_is_well(tmp_path: Path) -> None:
    quiet = [firing(".+", minute) for minute in range(1, MINUTES, 3)]
    assert not unit_tests(tmp_path, [group("well", {}, promql_expr_test=quiet)])


def test_every_alert_fires_after_its_time(tmp_path: Path) -> None:
    groups = []
    for case in CASES:
        labels = {**case.labels, "severity": case.severity}
        tests = [firing(case.alert, case.fires_at, labels)]
        tests += [firing(case.alert, case.silent_until)] if case.silent_until else []
        groups.append(group(str(case), case.series, promql_expr_test=tests))
    assert not unit_tests(tmp_path, groups)


def test_every_alert_has_a_case() -> None:
    tried = {(case.alert, case.severity) for case in CASES}
    assert tried == {(alert.name, alert.severity) for alert in alerts()}


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    names = {alert.name for alert in alerts()}
    page = (ROOT / RUNBOOKS).read_text()
    sections = dict(re.findall(r"^### (Moorage\w+)\n(.*?)(?=^##|\Z)", page, re.M | re.S))
    assert set(sections) == names
    for name, text in sections.items():
        parts = re.findall(r"^\*\*(\w[\w ]*)\.\*\*", text, re.M)
        assert [part for part in parts if part != "Look"] == ["Means", "Do"], name
    for alert in alerts():
        assert alert.annotations["runbook_url"] == f"{RUNBOOKS}#{alert.name.lower()}"
        assert {"summary", "description"} < set(alert.annotations)
        assert alert.severity in ("page", "ticket")


def test_pages_and_tickets_are_in_their_parts_of_the_runbooks() -> None:
    pages, _, tickets = (ROOT / RUNBOOKS).read_text().partition("\n## Tickets")
    for alert in alerts():
        part = pages if alert.severity == "page" or alert.name in PAGED else tickets
        assert f"\n### {alert.name}\n" in part


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_people_read_has_every_value(case: Case, tmp_path: Path) -> None:
    """promtool shows the annotations where it finds others than expected."""
    wrong = {"alertname": case.alert, "eval_time": f"{case.fires_at}m", "exp_alerts": []}
    shown = unit_tests(tmp_path, [group("read", case.series, alert_rule_test=[wrong])])
    found = re.findall(r'description="((?:[^"\\]|\\.)*)"', shown)
    assert found, shown
    for text in found:
        assert not re.search(r"error|no value|<nil>|\{\{|NaN|  | [.,]", text), text
