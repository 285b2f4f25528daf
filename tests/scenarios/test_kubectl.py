"""What somebody types at three in the morning: the same answers from both control planes."""

import asyncio
import json
import os
from collections.abc import Callable

import pytest
import pytest_asyncio

from tests.needs import needed
from tests.scenarios.world import World
from tools.build import find
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

DECISION = r"{.metadata.annotations.moorage\.io/decision}"


class Kubectl:
    """Runs kubectl as the administrator of a world's cluster."""

    def __init__(self, program: str, world: World) -> None:
        self._program = program
        self._world = world
        home, config = world.plane.directory, world.plane.kubeconfig("admin")
        self._environment = {"HOME": str(home), "KUBECONFIG": str(config)}

    async def __call__(self, words: str, *more: str, stdin: object = None, code: int = 0) -> str:
        """Run it and return what it prints; *words* are split, *more* are not."""
        process = await asyncio.create_subprocess_exec(
            *(self._program, *words.split(), *more),
            env=os.environ | self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            printed, _ = await process.communicate(json.dumps(stdin).encode())
        assert process.returncode == code, printed.decode()
        return printed.decode()

    async def until(self, words: str, satisfied: Callable[[str], object]) -> str:
        """Run it again and again until what it prints satisfies; return that."""
        printed = ""

        async def done() -> bool:
            nonlocal printed
            printed = await self(words)
            return bool(satisfied(printed))

        await self._world.until(done)
        return printed


@pytest_asyncio.fixture(loop_scope="session")
async def kubectl(world: World) -> Kubectl:
    """The kubectl of the release that runs, or for the embedded plane alone any there is."""
    if os.environ.get("MOORAGE_E2E"):
        return Kubectl(str(await asyncio.to_thread(find, "kubectl")), world)
    found = needed("kubectl")
    return Kubectl(found, world)


async def test_why_is_my_pod_pending(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler():
        stuck = pod("stuck", reject={"n1": "node is too hot", "n2": "no free slice"})
        assert await kubectl("apply -f -", stdin=stuck) == "pod/stuck created\n"
        told = await kubectl.until("describe pod stuck", lambda text: "FailedScheduling" in text)
        wide = _table(await kubectl("get pods -o wide"))["stuck"]
        events = await kubectl("get events --field-selector reason=FailedScheduling,type=Warning")
        mine = await kubectl("events --for pod/stuck --types=Warning")
        await world.create(pod("elsewhere", "nobody", spec={"nodeName": "n1"}))
        unassigned = await kubectl("get pods --field-selector spec.nodeName= -o name")

    assert unassigned == "pod/stuck\n"
    reasons = "0/2 nodes are available: 1 no free slice, 1 node is too hot. "
    assert reasons in told
    assert _row(told, "Node:") == ["<none>"]
    assert _row(told, "Status:") == ["Pending"]
    assert _row(told, "PodScheduled") == ["False"]
    assert _row(told, "Warning")[0] == "FailedScheduling"
    assert (wide["STATUS"], wide["NODE"]) == ("Pending", "<none>")
    for listed in (events, mine):
        assert "pod/stuck" in listed.lower()
        assert reasons in listed


async def test_what_is_changed_brings_a_stuck_pod_back(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1"))
    async with world.scheduler():
        await kubectl("create -f -", stdin=pod("stuck", reject={"n1": "no free slice"}))
        await world.event("stuck")
        assert await kubectl("annotate pod stuck steered/reject-") == "pod/stuck annotated\n"
        await kubectl("wait pod/stuck --for=condition=PodScheduled --timeout=60s")
        assert (await _wide(kubectl, "stuck"))["NODE"] == "n1"


async def test_where_did_my_pod_go_and_why(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1"), node("n2"), node("n3"))
    manifest = pod("p", "annotated", score={"n1": 20, "n2": 80}, reject={"n3": "full"})
    # The API server does not keep what is empty: it would be a change each time.
    manifest["metadata"] = {key: value for key, value in manifest["metadata"].items() if value}
    async with world.scheduler("annotated"):
        await kubectl("apply -f -", stdin=manifest)
        await kubectl("wait pod/p --for=condition=PodScheduled --timeout=60s")
        assert (await _wide(kubectl, "p"))["NODE"] == "n2"
        described = await kubectl.until("describe pod p", lambda text: "Scheduled " in text)
        decision = await kubectl("get pod p -o", f"jsonpath={DECISION}")

    assert "Successfully assigned default/p to n2" in described
    assert _row(described, "Node:") == ["n2/"]
    winner, second = (json.loads(decision)[key] for key in ("winner", "runnerUp"))
    assert (winner["node"], winner["plugins"], second["node"]) == ("n2", {"Steered": 80}, "n1")
    assert await kubectl("apply -f -", stdin=manifest) == "pod/p unchanged\n"


async def test_what_runs_on_a_node(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1", cpu="4", labels={"disk": "ssd"}), node("n2"))
    async with world.scheduler():
        await kubectl("create -f -", stdin=pod("p", cpu="1", score={"n1": 100}))
        await world.bound("p")
        nodes = _table(await kubectl("get nodes -o wide --show-labels"))
        described = await kubectl("describe node n1")

    assert set(nodes) == {"n1", "n2"}
    assert nodes["n1"]["LABELS"] == "disk=ssd"
    assert "(1 in total)" in described
    assert _lines(described, "default")[0][:4] == ["default", "p", "1", "(25%)"]


async def test_a_node_is_cordoned_drained_and_given_back(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1"), node("n2"))
    wish = {"n1": 100}
    async with world.scheduler():
        await kubectl("create -f -", stdin=pod("before", score=wish))
        assert (await world.bound("before"))["before"] == "n1"
        assert "node/n1 cordoned" in await kubectl("cordon n1")
        await kubectl("create -f -", stdin=pod("during", score=wish))
        assert (await world.bound("during"))["during"] == "n2"
        assert "node/n1 drained" in await kubectl("drain n1 --force")
        assert "NotFound" in await kubectl("get pod before", code=1)
        assert "node/n1 uncordoned" in await kubectl("uncordon n1")
        await kubectl("create -f -", stdin=pod("after", score=wish))
        assert (await world.bound("after"))["after"] == "n1"


async def test_a_deleted_pod_makes_room(world: World, kubectl: Kubectl) -> None:
    await world.nodes(node("n1", cpu="1"))
    async with world.scheduler():
        await kubectl("create -f -", stdin=pod("first", cpu="1"))
        await world.bound("first")
        await kubectl("create -f -", stdin=pod("second", cpu="1"))
        assert "1 Insufficient cpu" in await world.condition("second", "Unschedulable")
        assert 'pod "first" ' in await kubectl("delete pod first")
        await kubectl("wait pod/second --for=condition=PodScheduled --timeout=60s")
        assert set(_table(await kubectl("get pods"))) == {"second"}


async def _wide(kubectl: Kubectl, name: str) -> dict[str, str]:
    return _table(await kubectl("get pods -o wide"))[name]


def _table(text: str) -> dict[str, dict[str, str]]:
    """Read what `get` prints: by name, each cell by its heading."""
    header, *rows = text.splitlines()
    starts = [i for i, c in enumerate(header) if c != " " and header[max(0, i - 2) : i].isspace()]
    spans = list(zip([0, *starts], [*starts, None], strict=True))
    heads = [header[a:b].strip() for a, b in spans]
    lines = [[row[a:b].strip() for a, b in spans] for row in rows]
    return {line[0]: dict(zip(heads, line, strict=True)) for line in lines}


def _lines(text: str, word: str) -> list[list[str]]:
    lines = map(str.split, text.splitlines())
    return [line for line in lines if line and line[0] == word]


def _row(text: str, word: str) -> list[str]:
    """Return what follows a word on the first line that it begins."""
    return _lines(text, word)[0][1:]
