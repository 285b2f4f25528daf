"""Which tests passed only when they were run again."""

from pathlib import Path

import pytest

from tools.reruns import main

PASSED = '<testcase classname="a.b" name="{}"/>'
FAILED = '<testcase classname="a.b" name="{}"><failure/></testcase>'
ERROR = '<testcase classname="a.b" name="{}"><error/></testcase>'


def written(file: Path, *cases: str) -> str:
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return str(file)


def test_they_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(
        tmp_path / "1.xml",
        *(PASSED.format("good"), FAILED.format("flaky"), FAILED.format("broken")),
        *(PASSED.format("leaky"), ERROR.format("leaky")),
    )
    again = [PASSED.format("flaky"), FAILED.format("broken"), PASSED.format("leaky")]
    main([first, written(tmp_path / "2.xml", *again)])
    assert capsys.readouterr().out.splitlines() == [
        "2 tests passed only at their second run",
        "  a.b.flaky",
        "  a.b.leaky",
    ]
