"""Every rendering is applied to a real API server, runs as it is rendered, and binds pods."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.renderings.installation import Installation
from tests.e2e.rights import given, nameless, used_by_name
from tools.image.isolated import Isolated
from tools.manifests.rendering import Values, helm_test, installed, layouts, render

PLUGINS = ("NodeGroup", "ImageLocality", "NodeResourcesFit", "StatefulSetZone")
BINDING: Values = {
    "policy": {
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": n} for n in PLUGINS]}}}]
    },
    "statefulSets": {"enabled": True},
}
"""A policy that reads placements, and all that the gateway may be allowed to read."""

RENDERINGS: Mapping[str, Values] = {
    **{layout: {} for layout in sorted(layouts())},
    "second-scheduler, binds": BINDING,
}
"""Each committed install.yaml, and a rendering of values for which the chart has Moorage bind."""

ACCOUNTS = ("gateway", "filter", "scorer", "binder", "scheduler", "kube-scheduler")

SELDOM = {
    "binder create pods/binding": "where the policy has binds go to Moorage",
    "binder get pods": "after a bind whose answer got lost; test_rights.py loses one",
    "binder patch pods/status": "when a plugin wants a pod tried again; test_rights.py has one",
    "binder create events.events.k8s.io": "when a bind fails; test_rights.py has one fail",
    "binder patch events.events.k8s.io": "when it fails again for the same reason; test_rights.py",
    "gateway list events.events.k8s.io": "when somebody asks about a pod; test_rights.py does",
    "scheduler list events.events.k8s.io": "the same, of a gateway in kube-scheduler's pod",
    "gateway create events.events.k8s.io": "when a profile with pods is lost; test_rights.py",
    "gateway list deviceclasses.resource.k8s.io": "where the policy enables NodeResourcesFit",
    "gateway watch deviceclasses.resource.k8s.io": "where the policy enables NodeResourcesFit",
}
"""Rights that a run as short as this one need not use, and what uses them."""

OF_POLICIES = ("create pods/binding", "deviceclasses.resource.k8s.io")
"""Those of them that are used where a policy needs them."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rendering", RENDERINGS)
async def test_a_rendering_works_as_it_is(rendering: str, image: Isolated, tmp_path: Path) -> None:
    values = RENDERINGS[rendering]
    objects = render(values) if values else installed(rendering)
    async with Installation.on(tmp_path, image, objects) as installation:
        await installation.install()
        await installation.ready()
        check_processes(installation)
        await installation.schedule()
        assert await installation.examine() == []
        await installation.test(helm_test(values or layouts()[rendering]))
        check_rights(installation)


def check_processes(installation: Installation) -> None:
    """Fail if a process of the image has a right of root."""
    for each in installation.pods:
        for program in each.programs if "uid" in each.obj["metadata"] else ():
            text = Path(f"/proc/{program.pid}/status").read_text()
            status = {k: v.split() for k, v in re.findall(r"^(\w+):(.*)$", text, re.M)}
            assert status["Uid"] == ["65532"] * 4, program.name
            assert (status["CapEff"], status["NoNewPrivs"]) == (["0" * 16], ["1"]), program.name


def check_rights(installation: Installation) -> None:
    """Fail if something was forbidden, or nothing has needed a right and no reason is known."""
    log = installation.cluster.plane.audit_log
    binds = any(right.resource == "pods/binding" for right in used_by_name(log, "binder"))
    known = {right for right in SELDOM if not (binds and right.endswith(OF_POLICIES))}
    for account in ACCOUNTS:
        assert used_by_name(log, account, "forbid") == set(), account
        was_used = used_by_name(log, account)
        idle = given(account, installation.objects) - was_used - nameless(was_used)
        assert {f"{account} {right}" for right in idle} <= known
