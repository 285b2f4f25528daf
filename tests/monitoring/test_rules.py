"""Each alert fires when it should, after its time, and none does while an installation is well."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
        silent_until: The last minute at which it must not fire yet.
        fires_at: A minute at which it must fire.
        labels: Its labels besides name and severity.
    """

    alert: str
    severity: str
    series: Series
    silent_until: int
    fires_at: int
    labels: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.alert}-{self.severity}-{'-'.join(self.labels.values())}"


def page(alert: str, series: Series, silent_until: int, fires_at: int, **labels: str) -> Case:
    """Return a case of a page in the namespace moorage; the alert without "Moorage"."""
    return Case(
        alert=f"Moorage{alert}",
        severity="page",
        series=series,
        silent_until=silent_until,
        fires_at=fires_at,
        labels={"namespace": "moorage", **labels},
    )


def ticket(alert: str, series: Series, silent_until: int, fires_at: int, **labels: str) -> Case:
    """Return a case of a ticket, told as a page."""
    return replace(page(alert, series, silent_until, fires_at, **labels), severity="ticket")


def _stops(series: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(series, "")


GATEWAYS = [name for name in WELL if "gateway-" in name]
REFUSED = {requests("filter", each): steady(9) for each in ("ok", "failed")}
SLOW = {requests("filter", "ok"): steady(9), requests("filter", "timeout"): growing(2)}
LOST = {requests("prioritize", "timeout"): growing(60)}
LOAD = {"pod": "scorer-0", "source": "load"}
CERTIFICATE = {"pod": "gateway-0", "identity": "moorage-gateway"}

CASES = (
    page("NoLeader", {LEADER: "1x9 0x110"}, 12, 14),
    page("NoLeader", _stops(GATEWAYS), 2, 4),  # other processes are there
    replace(page("NoLeader", _stops(WELL), 2, 4), labels={}),
    page("NoFilter", {ready("filter"): "1x9 0x110"}, 11, 13),
    page("StateStale", {AGE: "0x9 0+60x110"}, 13, 15, pod="gateway-0", resource="pods"),
    page("CallsFailing", {requests("filter", "failed"): growing(60)}, 9, 15, verb="filter"),
    page("CallsFailing", SLOW, 9, 15, verb="filter"),
    page("BindCallsFailing", {requests("bind", "failed"): growing(700)}, 9, 15, verb="bind"),
    page("CallersRefused", REFUSED, 5, 20),
    page("CertificateExpires", {certificate("expiry"): steady(7260)}, 6, 8, **CERTIFICATE),
    ticket("CertificateExpires", {certificate("expiry"): steady(DAY / 8)}, 14, 16, **CERTIFICATE),
    ticket("NoScorer", {ready("scorer"): "2x9 0x110"}, 14, 16),
    ticket("ScoresLost", LOST, 9, 15, verb="prioritize"),
    ticket("CallsNearTimeout", durations("filter", 4), 14, 20, verb="filter"),
    ticket("CyclesQueue", queue(3), 14, 20),
    ticket("PluginFails", {FAILURES: growing(1)}, 14, 20, plugin="Load"),
    ticket("PluginFails", {BIND_PLUGIN: growing(1)}, 14, 20, plugin="Gang"),
    ticket("PluginFails", {BACKGROUND: growing(1)}, 14, 20, plugin="Load"),
    ticket("PolicyRefused", {POLICY: "0x9 1x110"}, 19, 21, pod="gateway-0"),
    ticket("BindOutcomesUnknown", {DEADLINE: growing(60)}, 9, 15),
    ticket("LeaderChanges", {TERMS: "3x20 4+1x99"}, 25, 35),
    ticket("CacheWrong", {DIFFERENCES: "0x20 1x99"}, 20, 22, phase="filter"),
    ticket("CacheWrong", {DIFFERENCES: "_x20 1x99"}, 19, 22, phase="filter"),  # it appears
    ticket("MeasurementsOld", {ANSWERED: "0+60x20 1200x99"}, 34, 37, **LOAD),
    ticket("MeasurementsOld", {ANSWERED: steady(0)}, 14, 17, **LOAD),  # it never answered
    ticket("AnnotationsOld", {ANNOTATED: "0+60x20 1200x99"}, 39, 42),
    ticket("VersionsDiffer", {build("scorer", "1.1.0"): steady(1)}, 59, 61),
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
        tests.append(firing(case.alert, case.silent_until))
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


def test_what_people_read_has_every_value(tmp_path: Path) -> None:
    """promtool shows the annotations where it finds others than expected."""
    groups = []
    for case in CASES:
        wrong = {"alertname": case.alert, "eval_time": f"{case.fires_at}m", "exp_alerts": []}
        groups.append(group(str(case), case.series, alert_rule_test=[wrong]))
    shown = unit_tests(tmp_path, groups)
    found = re.findall(r'description="((?:[^"\\]|\\.)*)"', shown)
    assert len(found) >= len(CASES), shown
    for text in found:
        assert not re.search(r"error|no value|<nil>|\{\{|NaN|  | [.,]", text), text
