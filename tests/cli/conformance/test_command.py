"""The command: options, a KubeSchedulerConfiguration, the report, exit codes; and the plugin."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from cli.conformance.kit import extender
from cli.main import main
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import ExtenderConfig
from tests.cli.conformance.extender import Extender, serving_beside
from tests.forked import forked

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: {url}
  filterVerb: filter
  bindVerb: bind
  httpTimeout: 3s
  nodeCacheCapable: true
  managedResources: [{{name: example.com/gpu}}]
"""


@pytest.fixture(scope="module")
def right() -> Iterator[str]:
    with serving_beside(Extender()) as config:
        yield config.url_prefix


@pytest.fixture(scope="module")
def wrong() -> Iterator[str]:
    percent = {"prioritize": lambda _, a: [{**entry, "Score": 100} for entry in a]}
    with serving_beside(Extender(changes=percent)) as config:
        yield config.url_prefix


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", *arguments])


def test_nothing_wrong_is_exit_code_0_and_few_lines(right: str) -> None:
    result = run(right)
    assert result.exit_code == 0, result.output
    assert "31 passed, 4 skipped" in result.output
    assert len(result.output.splitlines()) < 8


def test_a_failure_has_its_evidence_and_exit_code_1(wrong: str) -> None:
    result = run(wrong)
    assert result.exit_code == 1
    assert "_ test_answers[prioritize-range] _" in result.output
    assert "kube-scheduler clamps nothing: 100 counts as 1,000 points" in result.output
    assert "has 100, and 10 is the most" in result.output
    assert "sent: prioritize of default/plain, 5 nodes: " in result.output
    assert "1 failed, " in result.output
    assert run(wrong, "--score-scale", "100").exit_code == 0


def test_one_check_alone_looks_at_recorded_answers(wrong: str) -> None:
    result = run(wrong, "-v", "-k", "prioritize-range")
    assert result.exit_code == 1
    assert re.search(r"test_answers\[prioritize-range\] FAILED", result.output)
    assert "1 failed, 34 deselected" in result.output
    assert run(wrong, "-k", "prioritize-decodes").exit_code == 0


def test_junit_fails_what_hurts(wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    assert run(wrong, "--junitxml", str(file)).exit_code == 1
    (suite,) = ElementTree.parse(file).getroot()
    cases = {case.get("name"): case for case in suite}
    assert (suite.get("tests"), suite.get("failures")) == ("35", "1")
    failure = cases["test_answers[prioritize-range]"].find("failure")
    assert failure is not None
    assert "clamps nothing" in str(failure.text)
    assert cases["test_bind_missing_pod"].find("skipped") is not None


def test_without_pytest_the_next_step_is_said(right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cli.conformance.kit")
    monkeypatch.setitem(sys.modules, "pytest", None)
    result = run(right)
    assert result.exit_code == 2
    assert result.output.splitlines() == [
        (
            "moorage: the checks are tests of pytest: install it with "
            "`pip install '.[testing]'` in a clone"
        )
    ]


async def test_the_checks_run_among_the_tests_of_another_project(
    wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "test_own.py").write_text("def test_own() -> None:\n    pass\n")
    checks = ("-p", "moorage_apps.conformance", "--pyargs", "cli.conformance.checks", ".")
    alone = ("-p", "no:cacheprovider", "--disable-plugin-autoload")

    async def among(*options: str) -> tuple[int, str, str]:
        async with forked("pytest", *alone, *checks, *options, directory=tmp_path) as project:
            shown = (await project.stdout.read()).decode()
            return (*await project.ended(), shown)

    _, errors, shown = await among(
        "--extender-url", wrong, "--extender-options", "--score-scale 100"
    )
    assert "32 passed, 4 skipped" in shown, shown + errors
    assert "1 failed, 31 passed, 4 skipped" in (await among("--extender-url", wrong))[2]
    _, errors, _ = await among("--extender-url", "http://127.0.0.1:1")
    assert "cannot connect to http://127.0.0.1:1" in errors
    code, _, _ = await among()
    assert code == 2


def test_the_entry_of_a_configuration_is_checked(right: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(url=right))
    result = run("--config", str(file), "-v")
    assert result.exit_code == 0, result.output
    results = dict(re.findall(r"::test_(\S+) (\S+)", result.output))
    assert results["answers[filter-field]"] == "PASSED"
    assert results["answers[prioritize-range]"] == "SKIPPED"
    assert results["bind_missing_pod"] == "SKIPPED"


def test_one_of_several_extenders_is_named(right: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    another = "- {urlPrefix: http://h:1, prioritizeVerb: prioritize, weight: 1}\n"
    file.write_text(CONFIG.format(url=right) + another)
    result = run("--config", str(file))
    assert result.exit_code == 2
    assert f"give the URL of one of its extenders: {right}, http://h:1" in result.output
    assert run(right, "--config", str(file), "-k", "filter-field").exit_code == 0


def test_an_entry_for_binds_alone_belongs_to_the_other_with_its_url(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    cycle = CONFIG.format(url="http://h:1").replace("  bindVerb: bind\n", "")
    file.write_text(f"{cycle}- {{urlPrefix: http://h:1, bindVerb: binding}}\n")
    for url in (None, "http://h:1"):
        found = extender(url, file)
        assert (found.filter_verb, found.bind_verb) == ("filter", "")
        assert extender(url, file, bind=True).bind_verb == "binding"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give the URL of an extender, or --config FILE"),
        (("http://127.0.0.1:1",), "cannot connect to http://127.0.0.1:1"),
        (("http://127.0.0.1:1", "--verbs", "filtr"), "'filtr' is none of filter, prioritize"),
        (("http://127.0.0.1:1", "--tls", "."), "--tls is for https://"),
        (("ftp://127.0.0.1",), "begins with http:// or https://"),
        (("http://127.0.0.1:port",), "is no URL of an extender"),
        (("http://",), "is no URL of an extender"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_2(arguments: tuple[str, ...], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert text in result.output
    assert "Traceback" not in result.output


def entry(**fields: Any) -> ExtenderConfig:
    return extender("http://h:1/x", **fields)


def test_verbs_have_paths_and_bind_is_asked_for() -> None:
    found = entry(verbs="filter=/predicate,bind")
    assert (found.filter_verb, found.prioritize_verb, found.bind_verb) == ("predicate", "", "")
    assert entry(verbs="bind=b", bind=True).bind_verb == "b"
    assert entry(bind=True).bind_verb == "bind"
    assert entry().preempt_verb == "preempt"


def test_another_url_than_those_of_the_configuration_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(url="http://h:1"))
    with pytest.raises(
        ConfigurationError, match="give the URL of one of its extenders: http://h:1"
    ):
        extender("http://h:2", file)
