"""`moorage explain` about one node, and as a command."""

import asyncio
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.cli.support import ran
from tests.scenarios.devices import claim, claiming
from tests.scenarios.explain.asking import explained, headline
from tests.scenarios.explain.test_first_lines import NAMES, all_but
from tests.scenarios.world import World
from tools.planes.objects import NAMESPACE, node, pod

GATED = {"schedulingGates": [{"name": "example.com/quota"}]}

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_why_not_this_node(world: World) -> None:
    await world.nodes(node("n1", cpu="1"), *map(node, NAMES[1:]))
    async with world.scheduler():
        reasons = dict.fromkeys(NAMES, "no slice")
        await world.create(
            pod("only", reject=all_but("n2")),
            pod("best", score={"n3": 100, "n1": 40, "n2": 40}),
            pod("alike"),
            pod("both", cpu="2", reject=reasons),
        )
        place = (await world.bound("only", "best", "alike"))["alike"]
        await world.condition("both", "Unschedulable")
        assert await headline(world, "only", "n1") == (
            "only is not on n1 but on n2: Steered rejected it: no; evicting pods would not help"
        )
        other = "n2" if place == "n3" else "n3"
        assert (await headline(world, "alike", other)).startswith(
            (  # kube-scheduler draws among the best, and Moorage's best may be the other
                f"alike is not on {other} but on {place}: it ties for Moorage's best total, 0: ",
            )
        )
        assert await headline(world, "best", "n1") == (
            "best is not on n1 but on n3: it ties for Moorage's number 2, 40; n3 has 100"
        )
        assert await headline(world, "best", "n3") in {  # the second of the order of nodes
            f"best is on n3: Moorage prefers n3 to {second}, 100 to 40: Steered +60"
            for second in ("n1", "n2")
        }
        assert await headline(world, "both", "n1") == (
            "both is not on n1: kube-scheduler rejected it before Moorage was asked: "
            "Insufficient cpu"
        )


async def test_claims_that_exist_are_no_reason(world: World) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
    (await world.request("POST", path, claim("p"))).check()
    await world.create(claiming("p", "steered"))

    async def is_known() -> bool:
        return "has not tried it yet; does one with this profile run?" in await headline(world, "p")

    await world.until(is_known, 10)
    found = await explained(world, "p")
    assert found.next == ("a scheduler with a profile steered has to run",)
    (await world.request("DELETE", f"{path}/p")).check()


@pytest.mark.embedded_alone
async def test_the_command(world: World, tmp_path: Path) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("steered"):
        await world.create(pod("p", reject=all_but("n2")))
        await world.bound("p")
        await world.create(pod("nowhere", reject=all_but()), pod("gated", spec=GATED))
        await world.condition("nowhere", "Unschedulable")
    admin = ("--admin", world.services.admin)
    cluster = ("--kubeconfig", str(world.plane.kubeconfig("admin")))

    async def run(*arguments: str) -> tuple[int, str]:
        return await ran("explain", *arguments, *admin, *cluster)

    (status, text), (_, as_json), (_, as_yaml), missing, *named = await asyncio.gather(
        run("default/p"),
        run("default/p", "-o", "json"),
        run("default/p", "-o", "yaml"),
        run("default/nobody"),
        *(run(*words) for words in (("p",), ("pod/p", "-n", "default"), ("po/p",))),
    )
    (status, pending), (_, wide), (_, none), wrong = await asyncio.gather(
        run("--pending"),
        run("--pending", "-o", "wide", "-n", "default"),
        run("--pending", "-n", "kube-system"),
        run("p", "--context", "nothing"),
    )
    header, *lines = pending.splitlines()
    assert (status, header.split()) == (0, ["PENDING", "POD", "FOR", "WHY"])
    assert {line.split()[0]: line for line in lines}.keys() == {"default/nowhere", "default/gated"}
    assert "  none of 4 nodes suits it: 4 no (Moorage Steered)\n" in pending
    assert ". Next: change the pod or a node to what Steered asks for" in wide
    assert none == "No pod is pending.\n"
    assert wrong[0] == 1
    assert "nothing" in wrong[1]
    expected = "default/p is on n2: one node of 4 was left: Steered rejected 3 of 4: no"
    assert (status, text.splitlines()[0]) == (0, expected)
    assert "3      Steered  no\n" in text
    found = msgspec.json.decode(as_json)
    assert f"{found['pod']} {found['place']}: {found['reason']}" == expected
    assert yaml.safe_load(as_yaml) == found
    assert missing == (1, "moorage: there is no pod default/nobody\n")
    assert [answer[1].splitlines()[0] for answer in named] == [expected] * 3

    nowhere = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    (status, text), (_, as_json), without = await asyncio.gather(
        ran("explain", "p", *admin, environment=nowhere),
        ran("explain", "p", *admin, "-o", "json", environment=nowhere),
        ran("explain", "p", environment=nowhere),
    )
    assert (status, text.splitlines()[0]) == (0, expected)
    assert "Without pod groups and ResourceClaims: there is no kubeconfig at " in text
    assert msgspec.json.decode(as_json) | {"without": ""} == found
    assert without[1].startswith("moorage: there is no kubeconfig at ")
