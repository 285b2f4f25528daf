"""Each fault that doctor looks for, planted in an installation, is found and named."""

import json
from collections.abc import Sequence

import pytest

from cli.doctor.check import Finding, Level
from cli.doctor.checks import GROUPS, findings
from tests.cli.doctor.faults import Fault, faults
from tests.cli.doctor.installed import Installed
from tests.cli.support import ran

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def examined(installed: Installed) -> Sequence[Finding]:
    return list(findings(await installed.read()))


async def test_nothing_is_wrong_with_what_deploy_installs(installed: Installed) -> None:
    everything = await examined(installed)
    wrong = [each for each in everything if each.level is not Level.OK]
    assert not wrong
    assert len(everything) == sum(len(checks) for checks in GROUPS.values())


@pytest.mark.parametrize(
    "fault", tuple(faults()), ids=lambda each: f"{each.check}-{each.advice[:20]}"
)
async def test_a_fault_is_found_and_named(installed: Installed, fault: Fault) -> None:
    async with installed.changed(fault.path, fault.change):
        found = [each for each in await examined(installed) if each.check == fault.check]
    (finding, *_) = [each for each in found if fault.evidence in each.evidence] or found
    assert (finding.level, fault.evidence in finding.evidence) == (fault.level, True), found
    assert fault.advice in finding.change, finding


async def test_the_exit_code_is_for_ci(installed: Installed) -> None:
    there = f"--kubeconfig={installed.kubeconfig}"
    code, out = await ran("doctor", there, "-o", "json")
    assert (code, json.loads(out)["counts"]["problem"]) == (0, 0), out
    timeout, weight = (
        next(each for each in faults() if start in each.evidence)
        for start in ("httpTimeout is 1s", "weight is 1")
    )
    for fault, options, expected in (
        (weight, (), 0),
        (weight, ("--strict",), 1),
        (timeout, (), 1),
    ):
        async with installed.changed(fault.path, fault.change):
            code, out = await ran("doctor", there, *options)
        assert code == expected, out
        assert fault.advice in out, out


async def test_an_installation_outside_of_the_cluster_is_no_release(installed: Installed) -> None:
    gateway = installed.options_of_admin()
    there = f"--kubeconfig={installed.kubeconfig}"
    code, out = await ran("doctor", *gateway, there, "--gateway=other")
    assert "not checked: release-objects, release-rights, release-fields: no pod of" in out, out
    assert code == 0, out


async def test_where_nothing_answers_the_next_step_is_named() -> None:
    code, out = await ran("doctor", "--admin=http://127.0.0.1:1", "--gateway=other")
    assert code == 2, out
    assert "give --admin" in out
