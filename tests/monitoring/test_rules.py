"""Each alert fires when it should, after its time, and none does while an installation is well."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.chart import ROOT, RULES, alerts
from tests.monitoring.series import (
    AGE,
    ANNOTATED,
    ANSWERED,
    BACKGROUND,
    BIND_PLUGIN,
    DAY,
    DEADLINE,
    DIFFERENCES,
    FAILURES,
    LEADER,
    MINUTES,
    POLICY,
    TERMS,
    WELL,
    Series,
    build,
    certificate,
    durations,
    growing,
    queue,
    ready,
    requests,
    steady,
)
from tests.needs import needed
from tools.manifests.rendering import installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What fires an alert.

    Attributes:
        alert: Its name.
        severity: The rule that fires, of those with that name.
        series: What differs from an installation that is well; "" leaves a series out.
        silent_until: The last minute at which it must not fire yet, 0 for none.
        fires_at: A minute at which it must fire.
        labels: Its labels besides name and severity.
    """

    alert: str
    severity: str
    series: Series
    fires_at: int
    silent_until: int = 0
    labels: Mapping[str, str] = field(default_factory=lambda: {"namespace": "moorage"})

    def __str__(self) -> str:
        return f"{self.alert}-{self.severity}-{'-'.join(self.labels.values())}"


def case(
    alert: str,
    severity: str,
    series: Series,
    *,
    fires_at: int,
    silent_until: int = 0,
    **labels: str,
) -> Case:
    """Return a case of an alert of the namespace moorage."""
    return Case(
        alert=alert,
        severity=severity,
        series=series,
        silent_until=silent_until,
        fires_at=fires_at,
        labels={"namespace": "moorage", **labels},
    )


def _stops(series: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(series, "")


CASES = (
    case("MoorageNoLeader", "page", {LEADER: "1x9 0x110"}, silent_until=12, fires_at=14),
    case(  # its processes are there, but no gateway is
        "MoorageNoLeader",
        "page",
        _stops([name for name in WELL if "gateway-" in name]),
        silent_until=2,
        fires_at=4,
    ),
    Case(
        alert="MoorageNoLeader",
        severity="page",
        series=_stops(WELL),
        silent_until=2,
        fires_at=4,
        labels={},
    ),
    case("MoorageNoFilter", "page", {ready("filter"): "1x9 0x110"}, silent_until=11, fires_at=13),
    case(
        "MoorageStateStale",
        "page",
        {AGE: "0x9 0+60x110"},
        silent_until=13,
        fires_at=15,
        pod="gateway-0",
        resource="pods",
    ),
    case(
        "MoorageCallsFailing",
        "page",
        {requests("filter", "failed"): growing(60)},
        silent_until=9,
        fires_at=15,
        verb="filter",
    ),
    case(
        "MoorageCallsFailing",
        "page",
        {requests("filter", "ok"): steady(9), requests("filter", "timeout"): growing(2)},
        silent_until=9,
        fires_at=15,
        verb="filter",
    ),
    case(
        "MoorageBindCallsFailing",
        "page",
        {requests("bind", "failed"): growing(700)},
        silent_until=9,
        fires_at=15,
        verb="bind",
    ),
    case(
        "MoorageCallersRefused",
        "page",
        {requests("filter", "ok"): steady(9), requests("filter", "failed"): steady(9)},
        silent_until=5,
        fires_at=20,
    ),
    case(
        "MoorageCertificateExpires",
        "page",
        {certificate("expiry"): steady(2 * 3600 + 60)},
        silent_until=6,
        fires_at=8,
        pod="gateway-0",
        identity="moorage-gateway",
    ),
    case(
        "MoorageCertificateExpires",
        "ticket",
        {certificate("expiry"): steady(DAY / 8)},
        silent_until=14,
        fires_at=16,
        pod="gateway-0",
        identity="moorage-gateway",
    ),
    case("MoorageNoScorer", "ticket", {ready("scorer"): "2x9 0x110"}, silent_until=14, fires_at=16),
    case(
        "MoorageScoresLost",
        "ticket",
        {requests("prioritize", "timeout"): growing(60)},
        silent_until=9,
        fires_at=15,
        verb="prioritize",
    ),
    case(
        "MoorageCallsNearTimeout",
        "ticket",
        durations("filter", 4),
        silent_until=14,
        fires_at=20,
        verb="filter",
    ),
    case("MoorageCyclesQueue", "ticket", queue(3), silent_until=14, fires_at=20),
    case(
        "MooragePluginFails",
        "ticket",
        {FAILURES: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Load",
    ),
    case(
        "MooragePluginFails",
        "ticket",
        {BIND_PLUGIN: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Gang",
    ),
    case(
        "MooragePluginFails",
        "ticket",
        {BACKGROUND: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Load",
    ),
    case(
        "MooragePolicyRefused",
        "ticket",
        {POLICY: "0x9 1x110"},
        silent_until=19,
        fires_at=21,
        pod="gateway-0",
    ),
    case(
        "MoorageBindOutcomesUnknown",
        "ticket",
        {DEADLINE: growing(60)},
        silent_until=9,
        fires_at=15,
    ),
    case(
        "MoorageLeaderChanges",
        "ticket",
        {TERMS: "3x20 4+1x99"},
        silent_until=25,
        fires_at=35,
    ),
    case(
        "MoorageCacheWrong",
        "ticket",
        {DIFFERENCES: "0x20 1x99"},
        silent_until=20,
        fires_at=22,
        phase="filter",
    ),
    case(  # the counter appears with the first one
        "MoorageCacheWrong",
        "ticket",
        {DIFFERENCES: "_x20 1x99"},
        silent_until=19,
        fires_at=22,
        phase="filter",
    ),
    case(
        "MoorageMeasurementsOld",
        "ticket",
        {ANSWERED: "0+60x20 1200x99"},
        silent_until=34,
        fires_at=37,
        pod="scorer-0",
        source="load",
    ),
    case(  # it never answered
        "MoorageMeasurementsOld",
        "ticket",
        {ANSWERED: steady(0)},
        silent_until=14,
        fires_at=17,
        pod="scorer-0",
        source="load",
    ),
    case(
        "MoorageAnnotationsOld",
        "ticket",
        {ANNOTATED: "0+60x20 1200x99"},
        silent_until=39,
        fires_at=42,
    ),
    case(
        "MoorageVersionsDiffer",
        "ticket",
        {build("scorer", "1.1.0"): steady(1)},
        silent_until=59,
        fires_at=61,
    ),
)

RUNBOOKS = "docs/reference/runbooks.md"
PAGED = {alert.name for alert in alerts() if alert.severity == "page"}


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Prometheus' own tool."""
    program = needed("promtool")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


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
