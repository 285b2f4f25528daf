"""Each fault that doctor looks for, planted in an installation, is found and named."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.doctor.check import Finding, Level
from cli.doctor.checks import GROUPS, findings
from cli.up.kubeconfig import kubeconfig
from tests.cli.doctor.installed import NAMESPACE, Installed
from tests.cli.support import ran
from tools.inprocess.api import Object

Change = Callable[[Object], Object]

CORE = f"/api/v1/namespaces/{NAMESPACE}"
CONFIG = f"{CORE}/configmaps/kube-scheduler"
SERVICE = f"{CORE}/services/gateway"
SCHEDULER_POD = f"{CORE}/pods/scheduler-1"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A change to an object, and what the check that finds it reports.

    Attributes:
        check: The name of the check.
        path: The object.
        change: Returns it with the fault.
        level: How bad that is.
        evidence: A part of what is seen.
        advice: A part of what is to be changed.
    """

    check: str
    path: str
    change: Change
    evidence: str
    advice: str
    level: str = "problem"


def text(old: str, new: str) -> Change:
    """Replace a text in the data of a ConfigMap."""

    def change(obj: Object) -> Object:
        (name, content), *_ = obj["data"].items()
        assert old in content, old
        return {**obj, "data": {name: content.replace(old, new)}}

    return change


def fields(**values: object) -> Change:
    """Set fields: `spec__template__spec__hostNetwork=True`."""

    def change(obj: Object) -> Object:
        for path, value in values.items():
            *parents, last = path.split("__")
            place: Any = obj
            for parent in parents:
                place = place[int(parent) if parent.isdecimal() else parent]
            place[last] = value
        return obj

    return change


on_host = fields(spec__hostNetwork=True)

config = partial(Fault, path=CONFIG)


def faults() -> Iterator[Fault]:
    """Yield all faults."""
    yield from _of_the_way()
    yield from _of_the_configuration()
    yield from _of_certificates()
    yield from _of_what_runs()


def _of_the_way() -> Iterator[Fault]:
    yield config(
        check="extender-address",
        change=text("gateway.moorage.svc:8888", "gatway.moorage.svc:8888"),
        evidence="no Service gatway in namespace moorage with the gateway, did you mean `gateway`?",
        advice="compare urlPrefix",
    )
    yield config(
        check="extender-address",
        change=text(":8888", ":8889"),
        evidence="names port 8889, Service moorage/gateway has 8888",
        advice="write port 8888",
    )
    yield config(
        check="extender-entry",
        change=text("svc:8888", "svc:8888/scheduler"),
        evidence="the path of urlPrefix is /scheduler: kube-scheduler gets 404",
        advice="set the path of urlPrefix to empty",
    )
    yield config(
        check="extender-address",
        change=text("https://gateway.moorage.svc:8888", "https://127.0.0.1:8888"),
        evidence="is loopback, and no gateway runs in moorage/scheduler-1",
        advice="write the Service's address",
    )
    yield config(
        check="extender-entry",
        change=text("httpTimeout: 5s", "httpTimeout: 300000s"),
        evidence="httpTimeout is 300000s: one call that hangs stops all scheduling for 5,000 min",
        advice="set httpTimeout to 5s",
    )
    yield config(
        check="extender-entry",
        change=text("/etc/moorage/tls/tls.key", "/etc/moorage/tls/ca.key"),
        evidence="tlsConfig.keyFile is /etc/moorage/tls/ca.key: that is the authority's key",
        advice="set tlsConfig.keyFile to /etc/moorage/tls/tls.key",
    )
    yield Fault(
        check="extender-address",
        path=SCHEDULER_POD,
        change=on_host,
        evidence="dnsPolicy ClusterFirst, where gateway.moorage.svc does not resolve",
        advice="tlsConfig.serverName moorage-gateway",
    )
    yield Fault(
        check="scheduler-known",
        path=f"{SCHEDULER_POD}/status",
        change=fields(status__phase="Pending"),
        evidence="no pod of the kube-scheduler with ConfigMap moorage/kube-scheduler",
        advice="kubectl describe",
    )


def _of_the_configuration() -> Iterator[Fault]:
    yield config(
        check="scheduler-known",
        change=text("nodeCacheCapable:", "nodeCacheCapabel:"),
        evidence="nodeCacheCapabel",
        advice="correct it",
    )
    yield config(
        check="extender-entry",
        change=text("nodeCacheCapable: true", "nodeCacheCapable: false"),
        level="warning",
        evidence="kubernetes/kubernetes#141781",
        advice="set nodeCacheCapable to true",
    )
    yield config(
        check="extender-entry",
        change=text("percentageOfNodesToScore: 100", "percentageOfNodesToScore: 0"),
        level="warning",
        evidence="profile moorage: percentageOfNodesToScore is not set",
        advice="set percentageOfNodesToScore to 100",
    )
    yield config(
        check="extender-entry",
        change=text("httpTimeout: 5s", "httpTimeout: 1s"),
        evidence="httpTimeout is 1s: kube-scheduler gives up before the gateway answers",
        advice="set httpTimeout to 5s",
    )
    yield config(
        check="extender-entry",
        change=text("httpTimeout: 5s", "httpTimeout: 30s"),
        level="warning",
        evidence="gives up earlier than it has to",
        advice="set httpTimeout to 5s",
    )
    yield config(
        check="extender-entry",
        change=text("httpTimeout: 5s", "httpTimeout: -1s"),
        evidence="httpTimeout is -1s: a call without an answer stops all scheduling",
        advice="set httpTimeout to 5s",
    )
    yield config(
        check="extender-entry",
        change=text("weight: 15", "weight: 1"),
        level="warning",
        evidence="weight is 1: with scoreScale 100 that is at most 1,000 beside 1,400",
        advice="set weight to 15",
    )
    yield config(
        check="extender-verbs",
        change=text("prioritizeVerb: prioritize", "prioritizeVerb: ''"),
        evidence="has no prioritizeVerb, which is needed for ImageLocality",
        advice="moorage config extender",
    )
    yield config(
        check="extender-verbs",
        change=text("ignorable: false", "ignorable: false\n  bindVerb: bind"),
        level="warning",
        evidence="has a bindVerb that no enabled plugin needs",
        advice="leave it out",
    )
    yield config(
        check="extender-entry",
        change=text("ignorable: false", "ignorable: true"),
        level="warning",
        evidence="ignorable is true: while Moorage is down, pods are placed without its rules",
        advice="set ignorable to false",
    )
    yield config(
        check="extender-resources",
        change=text(
            "ignorable: false",
            "ignorable: false\n  managedResources: [{name: example.com/gpu}]",
        ),
        evidence="managedResources example.com/gpu keep other pods from Moorage",
        advice="remove managedResources",
    )
    yield config(
        check="profiles",
        change=text("schedulerName: moorage", "schedulerName: morage"),
        evidence="has the profile moorage, did you mean `morage`?",
        advice="add schedulerName: moorage",
    )
    yield config(
        check="profiles",
        change=text("schedulerName: moorage", "schedulerName: morage"),
        level="warning",
        evidence="pods of morage, did you mean `moorage`?",
        advice="add the profile to the policy",
    )


def _of_certificates() -> Iterator[Fault]:
    yield config(
        check="extender-entry",
        change=text("    caFile: /etc/moorage/tls/ca.crt\n", ""),
        evidence="tlsConfig.caFile is empty: kube-scheduler verifies no certificate",
        advice="set tlsConfig.caFile to /etc/moorage/tls/ca.crt",
    )
    yield config(
        check="extender-entry",
        change=text("    caFile: /etc/moorage/tls/ca.crt\n", "    insecure: true\n"),
        evidence="tlsConfig.insecure is true: kube-scheduler believes any server",
        advice="set tlsConfig.insecure to false",
    )
    yield config(
        check="extender-entry",
        change=text("https://", "http://"),
        evidence="plain text, and the gateway has certificates",
        advice="set the scheme of urlPrefix to https",
    )
    yield config(
        check="extender-entry",
        change=text("serverName: moorage-gateway", "serverName: moorage"),
        evidence="serverName is moorage: the gateway's certificate is for moorage-gateway",
        advice="set tlsConfig.serverName to moorage-gateway",
    )
    yield config(
        check="extender-entry",
        change=text("    certFile: /etc/moorage/tls/tls.crt\n", ""),
        evidence="tlsConfig.certFile is empty: kube-scheduler presents no certificate",
        advice="set tlsConfig.certFile to /etc/moorage/tls/tls.crt",
    )


def _of_what_runs() -> Iterator[Fault]:
    yield Fault(
        check="extender-entry",
        path=f"{DEPLOYMENTS}/filter",
        change=fields(spec__template__spec__schedulerName="moorage"),
        evidence="its profiles schedule Moorage's own pods, which cannot start",
        advice="set ignorable to true",
    )
    yield Fault(
        check="pods-ready",
        path=f"{DEPLOYMENTS}/scorer/status",
        change=fields(status__readyReplicas=1),
        level="warning",
        evidence="1 of 2 replicas of Deployment moorage/scorer are ready",
        advice="kubectl describe",
    )
    yield Fault(
        check="policy-active",
        path=f"{CORE}/configmaps/policy",
        change=text("profiles:", "scoreScale: 10\nprofiles:"),
        level="warning",
        evidence="ConfigMap moorage/policy has another content",
        advice="wait a minute",
    )
    yield Fault(
        check="scheduler-version",
        path=SCHEDULER_POD,
        change=fields(spec__containers__0__image="registry.k8s.io/kube-scheduler:v1.38.0"),
        evidence="moorage/scheduler-1 is 1.38, newer than the API server, 1.36",
        advice="v1.36",
    )


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
        code, out = await ran("doctor", f"--kubeconfig={file}", "--admin=http://127.0.0.1:1")
    assert code == 2, out
    assert "/version: " in out, out
    assert "Traceback" not in out
