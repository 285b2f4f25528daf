"""One pod of 40 has a plugin that does something bad to its process, or somebody kills a filter.

No other pod may fail an attempt because of that where two filters run, and only the one under way
where one does. Nobody else is blamed, and who is to blame is named. `MOORAGE_ROUNDS=2` repeats each
case; after a third pod the plugin would be suspended.
"""

import os
import re
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from cli.shared.manifests import Object
from cli.up.cluster import create
from cli.up.processes.stack import StackOptions
from tests.manifests import pod
from tests.stack.stack import Stack
from tools.planes.objects import node

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("innocents"),
    pytest.mark.timeout(900),
]

PODS = 40
ROUNDS = int(os.environ.get("MOORAGE_ROUNDS", "1"))
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

ENDS = {
    "Exit": "exit code 3",
    "Segfault": "SIGSEGV",
    "OutOfMemory": "SIGKILL",
    "CloseAll": "",  # the process ends in several ways
}
"""Deeds that end the process, and how."""

FAILS = {
    "Allocate": "plugin Allocate failed in filter_node: MemoryError",
    "Loop": "plugin Loop failed in filter_node: it took longer than its time budget",
    "Regex": "plugin Regex failed in filter_node: it took longer than its time budget",
    "LeaveByException": "plugin LeaveByException failed in filter_node: SystemExit",
}
"""Those that do not, and what an Event says of them."""

HARMLESS = ("Thread", "Nothing")


def policy() -> str:
    """Return a policy in which each deed has a profile of its own."""
    profiles = [
        {"schedulerName": deed.lower(), "plugins": {"filter": {"enabled": [{"name": deed}]}}}
        for deed in (*ENDS, *FAILS, *HARMLESS)
    ]
    kind = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}
    return yaml.safe_dump({**kind, "profiles": profiles})


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[1, 2], ids=["one", "two"])
async def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """Run Moorage with one filter, or two, and with what `moorage up` gives kube-scheduler."""
    directory: Path = tmp_path_factory.mktemp("innocents")
    (directory / "policy.yaml").write_text(policy())
    options = StackOptions(
        directory=directory,
        kubeconfig=None,
        config=directory / "policy.yaml",
        profiles=[deed.lower() for deed in (*ENDS, *FAILS, *HARMLESS)],
        plugins=(Path(__file__).with_name("deeds.py"),),
        filters=request.param,
    )
    async with Stack.started(options) as made:
        await made.create([node(f"n{i}") for i in range(3)])
        yield made


@dataclass
class Outcome:
    """What became of a round."""

    failed: dict[str, list[str]]
    """What Events say of the pods that failed an attempt."""

    ready: str
    """What the gateway's `/readyz` says."""

    decision: str
    """What decisions about the poison say."""


async def events(stack: Stack) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in (await stack.cluster.list(EVENTS))[0]:
        if each["reason"] == "FailedScheduling":
            found.setdefault(each["regarding"]["name"], []).append(each["note"])
    return found


def pods(deed: str, number: int, *, poison: bool) -> list[Object]:
    made = []
    for each in range(PODS):
        name, is_poison = f"{deed.lower()}-{number}-{each}", poison and each == PODS // 4
        labels = {"poison": ""} if is_poison else {}
        name = f"poison-{name}" if is_poison else name
        # No two are equal, so that the plugin is asked about each.
        made.append(pod(name, cpu=f"{each + 1}m", labels=labels, schedulerName=deed.lower()))
    return made


async def run(stack: Stack, deed: str, number: int, *, says: str = "", kills: str = "") -> Outcome:
    """Create the pods, and wait until all are bound but a poison, of which an Event *says* why."""
    wanted = pods(deed, number, poison=bool(says))
    named = {each["metadata"]["name"] for each in wanted}
    poison = next((name for name in named if name.startswith("poison-")), "")
    await create(stack.cluster, wanted)
    if kills:
        await stack.until(lambda: bound(stack, named, PODS // 4))
        stack.kill(kills, signal.SIGKILL)
    await stack.until(lambda: bound(stack, named - {poison}, PODS - bool(says)))

    async def said() -> bool:
        return any(says in note for note in (await events(stack)).get(poison, [""]))

    await stack.until(said)
    async with stack.session.get(f"{stack.addresses.admin}/readyz") as response:
        ready = await response.text()
    decision = str(await stack.decisions(poison)) if poison else ""
    failed = {name: notes for name, notes in (await events(stack)).items() if name in named}
    failed.pop(poison, None)
    async with stack.session.delete(
        f"{stack.addresses.api}/api/v1/namespaces/default/pods"
    ) as answer:
        assert answer.status < 300
    return Outcome(failed=failed, ready=ready, decision=decision)


async def bound(stack: Stack, names: set[str], count: int) -> bool:
    return sum(bool(at) for name, at in (await stack.places()).items() if name in names) >= count


def filters(stack: Stack) -> list[str]:
    return [name for name in stack.processes.names if name.startswith("filter")]


def judge(stack: Stack, outcome: Outcome) -> None:
    """Check that nobody innocent paid, or was blamed."""
    assert len(outcome.failed) <= (len(filters(stack)) == 1), outcome.failed
    blamed = re.findall(r"pod default/([\w-]+)", outcome.ready)
    assert all(name.startswith("poison-") for name in blamed), outcome.ready
    assert "suspended" not in outcome.ready


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("deed", ENDS)
async def test_who_ends_replicas_is_named_and_costs_others_nothing(
    stack: Stack, deed: str, number: int
) -> None:
    end = f" ({ENDS[deed]})" if ENDS[deed] else ""
    says = f"plugin {deed} failed in filter_node: a replica of filter ended{end}"
    outcome = await run(stack, deed, number, says=says)
    judge(stack, outcome)
    assert says in outcome.decision
    found = rf"a replica of filter ended \({ENDS[deed]}.*\) while plugin {deed} ran for pod "
    assert re.search(rf"{found}default/poison-{deed.lower()}-{number}-", outcome.ready)


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("deed", FAILS)
async def test_who_fails_is_named_and_costs_others_nothing(
    stack: Stack, deed: str, number: int
) -> None:
    outcome = await run(stack, deed, number, says=FAILS[deed])
    judge(stack, outcome)
    assert FAILS[deed] in outcome.decision


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_a_thread_that_keeps_the_processor_fails_nobody(stack: Stack, number: int) -> None:
    wanted = pods("Thread", number, poison=True)
    await create(stack.cluster, wanted)
    names = {each["metadata"]["name"] for each in wanted}
    await stack.until(lambda: bound(stack, names, PODS))
    assert not names & (await events(stack)).keys()


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_a_killed_filter_blames_nobody(stack: Stack, number: int) -> None:
    outcome = await run(stack, "Nothing", number, kills=filters(stack)[0])
    judge(stack, outcome)
