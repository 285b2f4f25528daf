"""What the gateway, its metrics, the clocks and kube-scheduler's Events show is found and named."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from msgspec import structs

from cli.doctor.check import Finding
from cli.doctor.checks import findings
from cli.doctor.installation.installation import METRICS, Installation, ProcessStatus
from cli.doctor.installation.objects import NotReadError, known
from cli.doctor.installation.schedulers import find_schedulers, parsed
from cli.shared.gateway.metrics import Metrics
from moorage_host.kube_scheduler import VERBS
from tests.cli.doctor.installed import Installed, event
from tools.planes.embedded import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

Planted = Callable[[Installation], Installation]

CYCLES = 'moorage_extender_requests_total{verb="prioritize",result="ok"} 50.0\n'
REFUSED = {
    "caller": "web at 10.0.0.9",
    "verb": "",
    "refused": True,
    "calls": 4,
    "secondsAgo": 3.0,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def healthy(installed: Installed) -> Installation:
    return await installed.read()


def report(**changes: Any) -> Planted:
    """Change what the gateway reports."""

    def plant(read: Installation) -> Installation:
        return replace(read, gateway=replace(known(read.gateway), **changes))

    return plant


def replicas(change: Callable[[dict[str, Any]], None]) -> Planted:
    """Change what the gateway answers to GET /replicas."""

    def plant(read: Installation) -> Installation:
        answer = dict(deepcopy(read.replicas))
        change(answer)
        return report(replicas=answer)(read)

    return plant


def metrics(text: str) -> Planted:
    return report(process=ProcessStatus(service="gateway", metrics=Metrics(text, METRICS)))


def second_filter(**changes: Any) -> Planted:
    """Add a replica of filter that differs."""

    def change(answer: dict[str, Any]) -> None:
        (first,) = answer["services"][0]["replicas"]
        answer["services"][0]["replicas"].append({**first, "place": "127.0.0.1:2", **changes})

    return replicas(change)


def of_another_version(answer: dict[str, Any]) -> None:
    (first,) = answer["services"][0]["replicas"]
    plugins = [
        {**each, "version": "f00"} if each["name"] == "NodeGroup" else each
        for each in first["plugins"]
    ]
    another = {**first, "place": "127.0.0.1:2", "plugins": plugins}
    answer["services"][0]["replicas"].append(another)


def on_loopback(url: str, *, secured: bool) -> Planted:
    """Have a kube-scheduler beside the gateway call it at *url*, as with `moorage up`."""

    def plant(read: Installation) -> Installation:
        file = ROOT / "deploy" / "files" / "kube-scheduler-config.yaml"
        text = file.read_text().replace("https://gateway.moorage.svc:8888", url)
        (scheduler,) = read.schedulers
        schedulers = (replace(scheduler, configuration=parsed(text), pods=()),)
        return replace(report(is_secured=secured)(read), schedulers=schedulers)

    return plant


FAULTS: list[tuple[str, Planted, str, str]] = [
    (
        "extender-called",
        replicas(lambda answer: answer.update(callers=[])),
        "nobody has called",
        "create a pod",
    ),
    (
        "extender-called",
        replicas(lambda answer: answer["callers"].append(REFUSED)),
        "refused 4 calls of web at 10.0.0.9, last 3 s ago: it is for moorage-scheduler",
        "--scheduler-identity",
    ),
    (
        "client-certificate",
        replicas(lambda answer: answer["callers"][0]["certificate"].update(notBefore=0.0)),
        "the certificate of moorage-scheduler at 127.0.0.1 expires at",
        "renew it",
    ),
    (
        "extender-called",
        metrics("moorage_extender_hidden_failures_total 3.0\n"),
        "3 prioritize calls failed, which kube-scheduler does not report",
        "gateway's log",
    ),
    (
        "plugins-work",
        metrics('moorage_plugin_failures_total{plugin="Green",phase="score"} 5.0\n'),
        "plugin Green has failed in 5 cycles",
        "service's log",
    ),
    (
        "plugins-work",
        metrics(f'{CYCLES}moorage_neutral_scores_total{{plugin="Green"}} 50.0\n'),
        "plugin Green has affected the order of nodes in none of 50 cycles",
        "inspector",
    ),
    (
        "processes-ready",
        report(
            process=ProcessStatus(service="gateway", problems={"cache": "pods are not read yet"})
        ),
        "is not ready: cache: pods are not read yet",
        "do what its reason asks for",
    ),
    (
        "processes-ready",
        lambda read: replace(read, gateway=NotReadError("no gateway runs in namespace moorage")),
        "no gateway runs in namespace moorage",
        "see whether its pod runs",
    ),
    (
        "processes-ready",
        report(
            process=ProcessStatus(service="gateway", notes={"policy": "policy.yaml:7: no plugin X"})
        ),
        "policy: policy.yaml:7: no plugin X",
        "see the log",
    ),
    (
        "extender-address",
        on_loopback("http://127.0.0.1:31777", secured=False),
        "names port 31777 of 127.0.0.1, and the gateway listens on",
        "into urlPrefix",
    ),
    (
        "extender-entry",
        on_loopback("https://127.0.0.1:8888", secured=False),
        "kube-scheduler begins with TLS, and the gateway has no certificates",
        "set the scheme of urlPrefix to http",
    ),
    (
        "leader",
        replicas(lambda answer: answer["gateway"].update(leaderElection="lease")),
        "only 1 runs",
        "replicas",
    ),
    (
        "versions",
        second_filter(moorageVersion="0.0.9"),
        "0.0.9: filter at 127.0.0.1:2",
        "the same image",
    ),
    (
        "versions",
        replicas(of_another_version),
        "replicas of filter have different versions of NodeGroup",
        "the same plugins",
    ),
    (
        "versions",
        second_filter(plugins=[]),
        "of 2 replicas of filter have plugin",
        "the same plugins",
    ),
]


def found(read: Installation, check: str) -> Finding:
    return next(each for each in findings(read) if each.check == check)


@pytest.mark.parametrize(("check", "plant", "evidence", "advice"), FAULTS)
async def test_what_is_reported_is_found_and_named(
    healthy: Installation, check: str, plant: Planted, evidence: str, advice: str
) -> None:
    everything = [each for each in findings(plant(healthy)) if each.check == check]
    finding = next((each for each in everything if evidence in each.evidence), None)
    assert finding is not None, everything
    assert finding.level != "ok", finding
    assert advice in finding.change, finding


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("dial tcp: lookup gateway.moorage.svc: no such host", "cluster IP"),
        ("dial tcp 10.0.0.1:8888: connect: connection refused", "whether the gateway is ready"),
        ("tls: failed to verify: x509: certificate signed by unknown authority", "caFile"),
        ("context deadline exceeded (Client.Timeout exceeded)", "NetworkPolicy"),
        ("EOF", "client certificate"),
    ],
)
async def test_what_kube_scheduler_reports_is_explained(
    installed: Installed, message: str, advice: str
) -> None:
    text = f'running extender: Post "https://gateway.moorage.svc:8888/filter": {message}'
    async with installed.with_object("/api/v1/namespaces/default/events", event(text)):
        finding = found(await installed.read(), "extender-events")
    assert finding.level == "problem", finding
    assert (message in finding.evidence, advice in finding.change) == (True, True), finding


async def test_without_rights_everything_else_is_still_checked(installed: Installed) -> None:
    installed.api.fault("list", "pods", times=1000, status=403)
    try:
        everything = list(findings(await installed.read()))
    finally:
        installed.api.faults.clear()
    levels = {each.check: each.level for each in everything}
    assert levels["client-certificate"] == "not checked"
    assert levels["extender-address"] == "ok"


async def test_of_a_control_plane_the_configuration_to_copy_is_read(installed: Installed) -> None:
    file = ROOT / "deploy" / "files" / "control-plane-scheduler-config.yaml"
    found_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "control-plane", "namespace": "moorage"},
        "data": {"kube-scheduler-config.yaml": file.read_text()},
    }
    read = await installed.read()
    lists = {**read.objects.lists, "configmaps": [found_map], "pods": []}
    (scheduler,) = find_schedulers(replace(read.objects, lists=lists), None)
    assert "ConfigMap moorage/control-plane, kube-scheduler-config.yaml" in scheduler.source
    at_control_plane = replace(read, schedulers=(scheduler,))
    levels = {each.check: each for each in findings(at_control_plane)}
    # The cluster's own pods come to Moorage, and start without it.
    for check in ("extender-entry", "profiles", "extender-verbs"):
        assert levels[check].level == "ok", levels[check]
    ignored = parsed(file.read_text().replace("ignorable: true", "ignorable: false"))
    strict = replace(read, schedulers=(replace(scheduler, configuration=ignored),))
    finding = found(strict, "extender-entry")
    assert finding.level == "problem", finding
    assert "cannot start while Moorage is down" in finding.evidence
    # Binds have an entry of their own, which must not be ignorable.
    answer = known(read.gateway)
    plugin = {
        "name": "Claims",
        "kind": "filter",
        "points": ["Filter", "Reserve"],
        "onlyShadow": False,
        "readsPlacements": False,
        "managedResources": [],
    }
    policy = {**answer.policy, "plugins": [*answer.policy["plugins"], plugin]}
    shipped = known(parsed(file.read_text()))
    binds = {f"{verb}_verb": "bind" if verb == "bind" else "" for verb in VERBS}
    entry = structs.replace(shipped.extenders[0], ignorable=False, **binds)
    both = structs.replace(shipped, extenders=(*shipped.extenders, entry))
    claiming = replace(
        at_control_plane,
        gateway=replace(answer, policy=policy),
        schedulers=(replace(scheduler, configuration=both),),
    )
    evidence = [each.evidence for each in findings(claiming) if each.level == "problem"]
    assert any("default-scheduler: they cannot start while" in each for each in evidence), evidence
