"""Whose pods a kube-scheduler may place, by its certificate: `--scheduler-identity`, over HTTPS."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.up.processes import free_ports
from gateway.edge.schedulers import Schedulers
from gateway.scheduling.scheduler import NOT_THEIRS
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from tools.inprocess.api import Object
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import (
    Gateway,
    bind,
    binder_service,
    filter_service,
    gateway,
    ready,
    scorer_service,
)
from tools.waiting import until

OURS = authority()
OWN = ("gateway", "filter", "scorer", "binder", "operator")
POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- {schedulerName: moorage}
- {schedulerName: batch, plugins: {multiPoint: {enabled: [{name: InTree}]}}}
"""
PROFILES = ("moorage", "batch")
SETTING = ("one", "other=batch", "both=batch", "both=moorage")
CALLERS = {
    ("one",): {"moorage", "batch"},
    ("other",): {"batch"},
    ("both",): {"moorage", "batch"},
    ("other", "one"): {"moorage", "batch"},
    ("other", "nobody"): {"batch"},
}
"""The names in certificates, and whose pods their owners may place."""


@asynccontextmanager
async def as_callers(folder: Path) -> AsyncIterator[dict[tuple[str, ...], Gateway]]:
    """Run Moorage; give it as each caller has it."""
    tls = write_folder(folder / "own", OURS, *(f"moorage-{name}" for name in OWN), "127.0.0.1")
    (folder / "policy.yaml").write_text(POLICY)
    (port,) = free_ports(1)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        process = await enter(
            gateway(
                folder,
                filters=await enter(filter_service(tls=tls)),
                scorer=await enter(scorer_service(tls=tls)),
                binder=f"127.0.0.1:{port}",
                config=folder / "policy.yaml",
                tls=tls,
                scheduler_identity=SETTING,
            )
        )
        await enter(binder_service(folder, port=port, tls=tls))
        await process.node("n1")
        await ready(process)
        callers = {}
        for names in CALLERS:
            own = write_folder(folder / "-".join(names), OURS, *names)
            context = client_context(read_certificate(own))
            session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
            callers[names] = replace(process, session=await enter(session))
        yield callers


def calls(obj: Object, name: str = "") -> Iterator[tuple[str, Object]]:
    """Yield a call of each verb about a pod; a bind may be of another *name*."""
    yield "filter", {"Pod": obj, "NodeNames": ["n1"]}
    yield "prioritize", {"Pod": obj, "NodeNames": ["n1"]}
    yield "preempt", {"Pod": obj, "NodeNameToMetaVictims": {"n1": {"Pods": []}}}
    metadata = obj["metadata"]
    bound = {"PodName": name or metadata["name"], "PodUID": metadata["uid"], "Node": "n1"}
    yield "bind", {"PodNamespace": "default", **bound}


async def is_refused(caller: Gateway, verb: str, body: Any) -> bool:
    async with caller.session.post(f"{caller.url}/{verb}", json=body) as response:
        text = f"{response.headers} {await response.text()}"
    return NOT_THEIRS in text


async def test_a_kube_scheduler_places_pods_of_its_profiles_alone(tmp_path: Path) -> None:
    found, bound = {}, {}
    async with as_callers(tmp_path) as callers:
        for (names, caller), profile in product(callers.items(), PROFILES):
            obj = caller.api.pod(f"{'-'.join(names)}-{profile}", schedulerName=profile)
            found[names, profile] = [await is_refused(caller, *each) for each in calls(obj)]
            bound[names, profile] = caller.api.node_of(obj["metadata"]["name"]) or ""
    served = {key: key[1] in CALLERS[key[0]] for key in found}
    assert found == {key: [not is_served] * 4 for key, is_served in served.items()}
    assert bound == {key: "n1" if is_served else "" for key, is_served in served.items()}


async def test_what_a_call_says_of_a_pod_does_not_count(tmp_path: Path) -> None:
    async with as_callers(tmp_path) as callers:
        thief, api = callers["other",], callers["other",].api
        victim = api.pod("victim", schedulerName="moorage")
        own = api.pod("own", schedulerName="batch")
        forged = {**victim, "spec": {**victim["spec"], "schedulerName": "batch"}}
        await until(lambda: is_refused(thief, *next(calls(forged))))  # the watch has shown it
        assert [await is_refused(thief, *each) for each in calls(forged)] == [True] * 4
        *_, (verb, body) = calls(own, "victim")  # the uid of one pod, the name of another
        status, answer = await thief.call(verb, body)
        assert (status, bool(answer["Error"]), api.node_of("victim")) == (200, True, None)
        assert await bind(thief, own) == ""


@pytest.mark.parametrize("text", ["", "=batch", "team="])
def test_an_identity_that_is_none_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f'"{text}"; write NAME or NAME=PROFILE'):
        Schedulers([text])
