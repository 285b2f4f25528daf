"""Which tests passed only when they were run again, and which of them did so before."""

from pathlib import Path

import pytest

from tools.reruns import RUNS, main

PASSED = '<testcase classname="a.b" name="{}"/>'
FAILED = '<testcase classname="a.b" name="{}"><failure/></testcase>'
ERROR = '<testcase classname="a.b" name="{}"><error/></testcase>'


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/moorage-ci/second-tries-test"


def written(file: Path, *cases: str) -> str:
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return str(file)


def run(folder: Path, *flaky: str) -> int:
    """Report a run in which these tests passed at their second try."""
    first = written(folder / "1.xml", *map(FAILED.format, flaky))
    second = folder / "2.xml"
    second.unlink(missing_ok=True)
    return main(
        "test", first, written(second, *map(PASSED.format, flaky)) if flaky else str(second)
    )


def test_they_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(
        tmp_path / "1.xml",
        *(PASSED.format("good"), FAILED.format("flaky"), FAILED.format("broken")),
        *(PASSED.format("leaky"), ERROR.format("leaky")),
    )
    again = [PASSED.format("flaky"), FAILED.format("broken"), PASSED.format("leaky")]
    assert main("test", first, written(tmp_path / "2.xml", *again)) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "2 tests passed only at their second run",
        "  a.b.flaky",
        "  a.b.leaky",
    ]


@pytest.mark.parametrize(("between", "code"), [(0, 1), (RUNS - 2, 1), (RUNS - 1, 0)])
def test_one_that_needs_two_tries_twice_in_ten_runs_fails_the_run(
    tmp_path: Path, record: Path, between: int, code: int
) -> None:
    assert run(tmp_path, "flaky") == 0
    for _ in range(between):
        assert run(tmp_path) == 0
    assert run(tmp_path, "flaky", "other") == code
    assert len(record.read_text().splitlines()) == min(between + 2, RUNS)


def test_a_broken_record_is_none(
    tmp_path: Path, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record.parent.mkdir(parents=True)
    record.write_text("{")
    assert run(tmp_path, "flaky") == 0
    assert "knows 0 runs of test before this one" in capsys.readouterr().out
    assert run(tmp_path, "flaky") == 1
