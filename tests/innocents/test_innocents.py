"""One pod of 40 has a plugin that does something bad to its process, or somebody kills a process.

No other pod may fail an attempt because of that where two filters run, and only the one under way
where one does. Nobody else is blamed, and who is to blame is named. Beside each deed another
process is killed, or none: which, changes with MOORAGE_ROUND, so that
`for round in 0 1 2 3 4; do MOORAGE_ROUND=$round .venv/bin/pytest -n 0 tests/innocents; done` has
each deed beside each kill.
"""

import itertools
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import aiohttp
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

LOG = logging.getLogger(__name__)

PODS = 40
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

DEEDS = (*ENDS, *FAILS)
HARMLESS = ("Thread", "Nothing")

KILLS = ("filter", "scorer", "binder", "gateway")
BESIDE = ("", *KILLS)
ROUND = int(os.environ.get("MOORAGE_ROUND", "0"))
CASES = [(deed, BESIDE[(place + ROUND) % len(BESIDE)]) for place, deed in enumerate(DEEDS)]
CASES += [("Nothing", killed) for killed in KILLS]

AWAY = 'Post "'
"""What begins an Event about a call that found no gateway; where it is the only one, pods pay."""


def policy() -> str:
    """Return a policy in which each deed has a profile of its own."""
    profiles = [
        {"schedulerName": deed.lower(), "plugins": {"filter": {"enabled": [{"name": deed}]}}}
        for deed in (*DEEDS, *HARMLESS)
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
        profiles=[deed.lower() for deed in (*DEEDS, *HARMLESS)],
        plugins=(Path(__file__).with_name("deeds.py"),),
        filters=request.param,
    )
    async with Stack.started(options) as made:
        await made.create([node(f"n{i}") for i in range(3)])
        yield made


async def events(stack: Stack) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in (await stack.cluster.list(EVENTS))[0]:
        if each["reason"] == "FailedScheduling":
            found.setdefault(each["regarding"]["name"], []).append(each["note"])
    return found


_numbers = itertools.count()


def pods(deed: str, *, poison: bool) -> list[Object]:
    made, number = [], next(_numbers)
    for each in range(PODS):
        name, is_poison = f"{deed.lower()}-{number}-{each}", poison and each == PODS // 4
        labels = {"poison": ""} if is_poison else {}
        name = f"poison-{name}" if is_poison else name
        # No two are equal, so that the plugin is asked about each.
        made.append(pod(name, cpu=f"{each + 1}m", labels=labels, schedulerName=deed.lower()))
    return made


async def bound(stack: Stack, names: set[str], count: int) -> bool:
    return sum(bool(at) for name, at in (await stack.places()).items() if name in names) >= count


async def readiness(stack: Stack) -> str:
    """Return what the gateway's `/readyz` says, once there is a gateway."""
    await stack.answers()
    async with stack.session.get(f"{stack.addresses.admin}/readyz") as response:
        return await response.text()


async def is_named(stack: Stack, name: str, says: str, blames: str) -> bool:
    """Whether Events and decisions say why a pod failed, and `/readyz` whom it blames."""
    try:
        decisions = str(await stack.decisions(name))
        shown = says in decisions and re.search(blames, await readiness(stack)) is not None
    except (aiohttp.ClientError, KeyError):  # a gateway that was killed knows nothing yet
        return False
    return shown and any(says in note for note in (await events(stack)).get(name, ()))


@pytest.mark.parametrize(("deed", "killed"), CASES, ids=lambda each: each or "alone")
async def test_who_does_harm_is_named_and_costs_others_nothing(
    stack: Stack, deed: str, killed: str
) -> None:
    says, blames = FAILS.get(deed, ""), ""
    if deed in ENDS:
        end = f" ({ENDS[deed]})" if ENDS[deed] else ""
        says = f"plugin {deed} failed in filter_node: a replica of filter ended{end}"
        blames = (
            rf"a replica of filter ended \({ENDS[deed]}.*\) while plugin {deed} ran for pod "
            f"default/poison-{deed.lower()}-"
        )
    wanted = pods(deed, poison=bool(says))
    named = {each["metadata"]["name"] for each in wanted}
    innocent = {name for name in named if not name.startswith("poison-")}
    await create(stack.cluster, wanted)
    if killed:
        await stack.until(lambda: bound(stack, named, PODS // 4))
        with suppress(ProcessLookupError):  # the deed was faster
            stack.kill(next(name for name in stack.processes.names if name.startswith(killed)))
    await stack.until(lambda: bound(stack, innocent, len(innocent)))
    for poison in named - innocent:
        await stack.until(partial(is_named, stack, poison, says, blames))
    found = {name: notes for name, notes in (await events(stack)).items() if name in innocent}
    paid = {
        name: notes
        for name, notes in found.items()
        if killed != "gateway" or not all(AWAY in note for note in notes)
    }
    away = len(found) - len(paid)
    LOG.info("%s beside %s: %d, %d without a gateway", deed, killed or "none", len(paid), away)
    assert len(paid) <= ("filter" in stack.processes.names), paid
    ready = await readiness(stack)
    blamed = re.findall(r"pod default/([\w-]+)", ready)
    assert all(name.startswith("poison-") for name in blamed), ready
    assert "suspended" not in ready
    async with stack.session.delete(
        f"{stack.addresses.api}/api/v1/namespaces/default/pods"
    ) as answer:
        assert answer.status < 300


async def test_a_thread_that_keeps_the_processor_fails_nobody(stack: Stack) -> None:
    wanted = pods("Thread", poison=True)
    await create(stack.cluster, wanted)
    names = {each["metadata"]["name"] for each in wanted}
    await stack.until(lambda: bound(stack, names, PODS))
    failed = {name: notes for name, notes in (await events(stack)).items() if name in names}
    assert not failed
