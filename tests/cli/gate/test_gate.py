"""`moorage gate`: what it lets go, what it says of the others, and what stops it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.gate.gating import Gates, run
from cli.shared.gateway.client import connected
from cli.shared.gateway.options import GatewayOptions
from moorage_host.kube import KubeStatusError, connect
from tools.inprocess.api import Object, send
from tools.inprocess.gateway import Gateway, plane, policy_of
from tools.planes.objects import binding, pod
from tools.waiting import until

PODS = "/api/v1/namespaces/default/pods"
GATE, OTHER = {"name": "moorage.io/group"}, {"name": "example.com/quota"}


@dataclass(frozen=True)
class Groups:
    """A cluster with one node of four processors, whose groups the plugin Gang sees."""

    running: Gateway
    options: GatewayOptions

    async def create(
        self, group: str, *others: Object, cpu: str = "1", profile: str = "moorage"
    ) -> None:
        """Create two pods, the second with *others* of gates; wait until the gateway sees them."""
        labels = {"moorage.io/group": group, "moorage.io/group-size": "2"}
        for number, gates in enumerate(([GATE], [GATE, *others])):
            spec = {"schedulingGates": gates}
            made = pod(f"{group}-{number}", profile, cpu, labels=labels, spec=spec)
            self.running.api.create(PODS, made)

        async def is_seen() -> bool:
            _, answer = await self.running.get("/decisions/pending")
            return {f"default/{group}-0", f"default/{group}-1"} <= {
                each["pod"] for each in answer["items"]
            }

        await until(is_seen)

    async def look(self) -> None:
        await run(self.options, once=True, interval=1, timeout=60)

    def gates(self, group: str) -> list[list[str]]:
        specs = (self.running.api.read_pod(f"{group}-{number}")["spec"] for number in range(2))
        return [[each["name"] for each in spec.get("schedulingGates", ())] for spec in specs]


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of the command, up to a semicolon, without the gateway's log."""
    lines = capsys.readouterr().out.splitlines()
    return [line.partition(";")[0] for line in lines if line.startswith("default/")]


@pytest.fixture
async def groups(tmp_path: Path) -> AsyncIterator[Groups]:
    policy = policy_of("{multiPoint: {enabled: [{name: Gang}, {name: NodeResourcesFit}]}}")
    async with plane(tmp_path, policy=policy, nodes=("n1",)) as running:
        options = GatewayOptions(admin=running.admin, kubeconfig=tmp_path / "kubeconfig")
        yield Groups(running, options)


async def test_the_first_group_that_fits_is_let_go_and_the_others_say_why_they_stay(
    groups: Groups, capsys: pytest.CaptureFixture[str]
) -> None:
    for group, cpu, profile in (
        ("astray", "1", "nobody"),
        ("large", "3", "moorage"),
        ("one", "1", "moorage"),
        ("two", "1", "moorage"),
    ):
        await groups.create(group, OTHER, cpu=cpu, profile=profile)
    await groups.look()
    stay = [
        "default/astray stays: there is no profile `nobody`",
        "default/large stays: group default/large does not fit: 1 of 2 placed",
    ]
    assert said(capsys) == [*stay, "default/one: its 2 pods may go"]
    assert groups.gates("one") == [[], ["example.com/quota"]]
    for group in ("astray", "large", "two"):
        assert groups.gates(group) == [[GATE["name"]], [GATE["name"], "example.com/quota"]]

    groups.running.api.fault("patch", "pods", status=403)
    await groups.look()  # by another command, which does not know that `one` is on its way
    refused = "default/two stays: its gate cannot be removed: PATCH /api/v1/namespaces/default/pods"
    *others, last = said(capsys)
    assert (others, last.partition("/two-")[0]) == (stay, refused)


async def test_the_next_group_waits_until_the_one_before_is_bound(groups: Groups) -> None:
    await groups.create("one")
    await groups.create("two")
    client = await connect(groups.options.kubeconfig)
    patient, hasty = (Gates(client, timeout=seconds) for seconds in (600, 0))
    try:
        async with connected(groups.options, client) as gateway:
            assert await patient.look(gateway) == ["default/one: its 2 pods may go"]
            assert await patient.look(gateway) == []
            assert await hasty.look(gateway) == ["default/two: its 2 pods may go"]
            for group in ("one", "two"):
                for number in range(2):
                    name = f"{group}-{number}"
                    await send(client, "POST", f"{PODS}/{name}/binding", binding(name, "n1"))
            await groups.create("three", cpu="3")
            (line,) = await patient.look(gateway)
            assert line.startswith("default/three stays: group default/three does not fit")
            assert await patient.look(gateway) == []  # nothing new
    finally:
        await client.close()


async def test_what_stops_a_single_look_is_only_told_where_another_one_follows(
    groups: Groups, capsys: pytest.CaptureFixture[str]
) -> None:
    groups.running.api.fault("list", "pods", times=2, status=403)
    with pytest.raises(KubeStatusError, match="GET /api/v1/pods: API server answered 403"):
        await groups.look()
    await groups.create("one")
    capsys.readouterr()
    looking = asyncio.create_task(run(groups.options, once=False, interval=0.1, timeout=60))
    await until(lambda: groups.gates("one") == [[], []])
    looking.cancel()
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "groups stay" in line)
    assert told.startswith("groups stay at their gates: GET /api/v1/pods: API server answered 403")
