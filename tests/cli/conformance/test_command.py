"""The command: options, a KubeSchedulerConfiguration, the three outputs, exit codes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from cli.conformance.checks import all_checks
from cli.conformance.findings import Severity
from cli.conformance.target import Options, extenders
from cli.main import main
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import ExtenderConfig

SERVER = """
import asyncio, sys
from tests.cli.conformance.extender import Extender, serving

async def serve():
    percent = {"prioritize": lambda _, a: [{**entry, "Score": 100} for entry in a]}
    async with serving(Extender(changes=percent if sys.argv[1:] else {})) as config:
        print(config.url_prefix, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""

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


def served(*arguments: str) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def right() -> Iterator[str]:
    yield from served()


@pytest.fixture(scope="module")
def wrong() -> Iterator[str]:
    yield from served("percentages")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", *arguments])


def test_a_table_of_all_checks_and_exit_code_0(right: str) -> None:
    result = run(right)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    for check in all_checks():
        (line,) = (line for line in lines if line.startswith(f"{check.name} "))
        assert line.split()[1] in ("ok", "skipped")
    assert lines[-1].endswith(" skipped")


def test_a_finding_has_its_evidence_and_exit_code_1(wrong: str) -> None:
    result = run(wrong)
    assert result.exit_code == 1
    finding = result.output[result.output.index("\nprioritize-range: wrong placement") :]
    assert "sent: prioritize of default/plain, 5 nodes: " in finding
    assert "has 100, and 10 is the most" in finding
    assert "kube-scheduler clamps nothing: 100 counts as 1,000 points" in finding
    assert "see docs/reference/conformance.md#prioritize" in finding
    assert run(wrong, "--score-scale", "100").exit_code == 0


def test_json_has_every_check(wrong: str) -> None:
    result = run(wrong, "-o", "json")
    (report,) = json.loads(result.stdout)
    assert [outcome["check"] for outcome in report["outcomes"]] == [c.name for c in all_checks()]
    (finding,) = (f for outcome in report["outcomes"] for f in outcome["findings"])
    assert finding["severity"] == Severity.WRONG
    assert set(finding) >= {"check", "sent", "got", "consequence", "versions", "times"}
    assert report["versions"] == ["1.30", "1.36", "1.37"]


def test_junit_fails_what_hurts(wrong: str) -> None:
    suites = ElementTree.fromstring(run(wrong, "-o", "junit").stdout.encode())
    (suite,) = suites
    cases = {case.get("name"): case for case in suite}
    assert (suite.get("tests"), suite.get("failures")) == (str(len(all_checks())), "1")
    failure = cases["prioritize-range"].find("failure")
    assert failure is not None
    assert failure.get("type") == Severity.WRONG
    assert cases["bind-decodes"].find("skipped") is not None


def test_entries_of_a_configuration_are_checked(right: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(url=right))
    result = run("--config", str(file))
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split()[1] for line in result.output.splitlines() if line}
    assert (lines["filter-field"], lines["prioritize-range"]) == ("ok", "skipped")
    assert lines["bind-decodes"] == "skipped"
    assert lines["http-not-managed"] == "style"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give the URL of an extender, or --config FILE"),
        (("http://127.0.0.1:1",), "cannot connect to http://127.0.0.1:1"),
        (("http://127.0.0.1:1", "--verbs", "filtr"), "'filtr' is none of filter, prioritize"),
        (("http://127.0.0.1:1", "--timeout", "soon"), "--timeout"),
        (("http://127.0.0.1:1", "--server-name", "x"), "are for https://"),
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


def entry(**fields: object) -> ExtenderConfig:
    (found,) = extenders(Options(url="http://h:1/x", **fields))  # type: ignore[arg-type]
    return found


def test_verbs_have_paths_and_bind_is_asked_for() -> None:
    found = entry(verbs="filter=/predicate,bind")
    assert (found.filter_verb, found.prioritize_verb, found.bind_verb) == ("predicate", "", "")
    assert entry(verbs="bind=b", bind=True).bind_verb == "b"
    assert entry(bind=True).bind_verb == "bind"
    assert entry().preempt_verb == "preempt"


def test_another_url_than_those_of_the_configuration_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(url="http://h:1"))
    with pytest.raises(ConfigurationError, match="no extender with the urlPrefix http://h:2"):
        extenders(Options(url="http://h:2", config=file))
