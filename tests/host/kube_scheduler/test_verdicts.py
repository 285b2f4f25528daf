"""A configuration is read if, and only if, kube-scheduler starts with it: recorded verdicts."""

import json
import re
from typing import Any

import pytest

from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import parse_configuration
from tools.golden.configurations import RECORDED, text_of

RECORDING = json.loads(RECORDED.read_text())
CASES = {case["case"]: case for case in RECORDING["cases"]}


def refusal(case: dict[str, Any], version: str) -> str:
    """Return what is said of a case; "" if it is read."""
    try:
        parse_configuration(text_of(case), source="f", minor=int(version.partition(".")[2]))
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("version", RECORDING["versions"])
def test_the_verdict_is_kube_schedulers(version: str) -> None:
    said = {name: refusal(case, version) for name, case in CASES.items()}
    wrong = {
        name: text or "it is read"
        for name, text in said.items()
        if (not text) is not (version in CASES[name]["starts"])
    }
    assert wrong == {}


def compared(path: str) -> str:
    """Return a path as kube-scheduler writes those of wrong types: without indices."""
    named = re.sub(r'\["([^"]*)"\]', r".\1", path).lstrip(".")
    return re.sub(r"\[[^]]*\]", "", named).replace(".preference.", ".").lower()


def test_each_field_that_kube_scheduler_names_is_named_with_its_line() -> None:
    for name, case in CASES.items():
        if not case.get("paths"):
            continue
        version = [each for each in RECORDING["versions"] if each not in case["starts"]][-1]
        lines = refusal(case, version).splitlines()
        found = [re.match(r"f:\d+: (\S+): ", line) for line in lines]
        assert all(found), (name, lines)
        ours = [compared(each[1]) for each in found if each]
        for path in map(compared, case["paths"]):
            assert any(path in each for each in ours), (name, path, lines)
