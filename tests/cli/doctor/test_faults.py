"""Each fault that doctor looks for, planted in an installation, is found and named."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from cli.doctor.check import Finding, Level
from cli.doctor.checks import GROUPS, findings
from cli.doctor.installation.installation import read_installation
from cli.shared.gateway.options import GatewayOptions
from cli.up.kubeconfig import kubeconfig
from moorage_host.kube import KubeUnreachableError
from tests.cli.doctor.installed import NAMESPACE, Installed
from tests.cli.support import ran
from tools.inprocess.api import Object


class Fault(NamedTuple):
    """A change to an object, and what the check that finds it reports.

    Attributes:
        path: The object, after its group, version and namespace.
        old: What is replaced: a text in a ConfigMap, or a field.
        new: What takes its place.
        seen: Level and name of the check.
        evidence: A part of what is seen.
        advice: A part of what is to be changed.
    """

    path: str
    old: str
    new: str
    seen: str
    evidence: str
    advice: str

    @property
    def object(self) -> str:
        group = "/apis/apps/v1" if self.path.startswith("deployments/") else "/api/v1"
        return f"{group}/namespaces/{NAMESPACE}/{self.path}"

    def planted(self, obj: Object) -> Object:
        """Return the object with the fault."""
        if self.path.startswith("configmaps/"):
            (name, content), *_ = obj["data"].items()
            assert self.old in content, self.old
            return {**obj, "data": {name: content.replace(self.old, self.new)}}
        *parents, last = self.old.split(".")
        place: Any = obj
        for parent in parents:
            place = place[int(parent) if parent.isdecimal() else parent]
        place[last] = json.loads(self.new)
        return obj


def read(text: str) -> Fault:
    """Read one of `faults.txt`: a change to an object, what is seen, and what is to be done."""
    changed, found, advice = text.splitlines()
    path, _, change = changed.replace(r"\n", "\n").partition(": ")
    old, _, new = change.partition(" =>" if path.startswith("configmaps/") else " =")
    seen, _, evidence = found.partition(": ")
    return Fault(path, old, new.removeprefix(" "), seen, evidence, advice.removeprefix("to do: "))


FAULTS = [
    read(each) for each in Path(__file__).with_name("faults.txt").read_text().strip().split("\n\n")
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def examined(installed: Installed) -> Sequence[Finding]:
    return list(findings(await installed.read()))


async def test_nothing_is_wrong_with_what_deploy_installs(installed: Installed) -> None:
    everything = await examined(installed)
    wrong = [each for each in everything if each.level is not Level.OK]
    assert not wrong
    assert len(everything) == sum(len(checks) for checks in GROUPS.values())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.seen}-{each.advice[:20]}")
async def test_a_fault_is_found_and_named(installed: Installed, fault: Fault) -> None:
    async with installed.changed(fault.object, fault.planted):
        everything = await examined(installed)
    found = [each for each in everything if fault.seen.endswith(f" {each.check}")]
    (finding, *_) = [each for each in found if fault.evidence in each.evidence] or found
    assert f"{finding.level} {finding.check}" == fault.seen, found
    assert fault.evidence in finding.evidence
    assert fault.advice in finding.change, finding


async def test_the_exit_code_is_for_ci(installed: Installed) -> None:
    there = f"--kubeconfig={installed.kubeconfig}"
    code, out = await ran("doctor", there, "-o", "json")
    assert (code, json.loads(out)["counts"]["problem"]) == (0, 0), out
    timeout, weight = (
        next(each for each in FAULTS if start in each.evidence)
        for start in ("httpTimeout is 1s", "weight is 1")
    )
    for fault, options, expected in (
        (weight, (), 0),
        (weight, ("--strict",), 1),
        (timeout, (), 1),
    ):
        async with installed.changed(fault.object, fault.planted):
            code, out = await ran("doctor", there, *options)
        assert code == expected, out
        assert fault.advice in out, out


async def test_a_gateway_that_runs_outside_of_the_cluster_is_checked(installed: Installed) -> None:
    gateway = installed.options_of_admin()
    there = f"--kubeconfig={installed.kubeconfig}"
    code, out = await ran("doctor", *gateway, there, "--gateway=other")
    assert code == 0, out


async def test_where_nothing_answers_the_next_step_is_named() -> None:
    code, out = await ran("doctor", "--admin=http://127.0.0.1:1", "--gateway=other")
    assert code == 2, out
    assert "pass --kubeconfig FILE" in out


@pytest.mark.parametrize("body", ["", "<p>", "[]", "{}"], ids=["none", "html", "list", "no date"])
async def test_what_is_no_api_server_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr("cli.doctor.installation.objects.SECONDS", 0.5 if body else 0.05)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if body:
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(f"{head}{body}".encode())
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{port}", "")))
        options = GatewayOptions(kubeconfig=file, admin="http://127.0.0.1:1")
        with pytest.raises(KubeUnreachableError, match="GET /version: "):
            await read_installation(options, None)
