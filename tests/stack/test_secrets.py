"""What pods and callers keep secret is in no log, decision, metric, Event, error or answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

import aiohttp
import grpc.aio
import pytest

from moorage.v1 import binder_pb2, filter_pb2, types_pb2
from tests.fuzz.cases import mutated
from tests.manifests import pod
from tests.stack.stack import KEPT, Stack
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARK = "s3cr3t-m4rk"
TOKEN = f"{MARK}-token"
BROKEN = 150
"""Mutated calls of each verb."""

VERBS = ("filter", "prioritize", "preempt", "bind")


def marked(name: str, **spec: Any) -> dict[str, Any]:
    """Make a pod with a secret wherever pods have some."""
    made = pod(name, schedulerName="moorage", **spec)
    made["metadata"]["annotations"] = {"vault.example.com/token": f"{MARK}-annotation"}
    container = made["spec"]["containers"][0]
    container["env"] = [{"name": "PASSWORD", "value": f"{MARK}-env"}]
    container["args"] = [f"--password={MARK}-args"]
    container["command"] = ["sh", "-c", f"echo {MARK}-command"]
    container["lifecycle"] = {"postStart": {"exec": {"command": [f"{MARK}-hook"]}}}
    container["livenessProbe"] = {
        "httpGet": {"port": 80, "httpHeaders": [{"name": "X", "value": f"{MARK}-probe"}]}
    }
    made["spec"]["imagePullSecrets"] = [{"name": f"{MARK}-pull"}]
    return made


def calls(obj: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a call of each verb about a pod."""
    yield "filter", {"Pod": obj, "Nodes": None, "NodeNames": ["s1", "gone"]}
    yield "prioritize", {"Pod": obj, "Nodes": None, "NodeNames": ["s1"]}
    victims = {"s1": {"Pods": [obj], "NumPDBViolations": 0}}
    yield "preempt", {"Pod": obj, "NodeNameToVictims": victims}
    bind = {"PodName": "gone", "PodNamespace": "default", "PodUID": "u", "Node": "s1"}
    yield "bind", bind | {"Token": TOKEN, "Pod": obj}


def broken(body: bytes, random: Random) -> Iterator[bytes]:
    """Yield the same body, broken in many ways."""
    at = body.index(MARK.encode())
    yield body[: at + len(MARK) + 2]
    yield body.replace(MARK.encode(), MARK.encode() + b"\xff\xfe")
    yield body.replace(b'"metadata"', b'"METADATA"')
    yield body + MARK.encode()
    for kind in (b"7", b"null", b"[]", b"{}"):
        yield body.replace(b'"env":[', b'"env":' + kind + b',"x":[')
    for _ in range(BROKEN):
        yield mutated(json.loads(body), random)


async def answers(stack: Stack, random: Random) -> AsyncIterator[bytes]:
    """Send everything that is broken, twenty at a time; yield the answers."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}

    async def answer(verb: str, body: bytes) -> bytes:
        url = f"{stack.addresses.extender}/{verb}"
        async with stack.session.post(url, data=body, headers=headers) as response:
            return await response.read()

    for verb, call in calls(marked("broken")):
        bodies = broken(json.dumps(call, separators=(",", ":")).encode(), random)
        while some := list(islice(bodies, 20)):
            for content in await asyncio.gather(*(answer(verb, body) for body in some)):
                yield content
    async with stack.session.get(f"{stack.addresses.admin}/readyz", headers=headers) as response:
        yield await response.read()


HEADS = (f"Authorization: Bearer {TOKEN}\x01", f"Bad Header {TOKEN}", f"X: {TOKEN}\r\n y")


async def no_http(url: str, line: str) -> None:
    """Send a head that is none, with a token in it."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /filter HTTP/1.1\r\nHost: {host}\r\n{line}\r\n\r\n".encode())
    with suppress(ConnectionError):
        async with asyncio.timeout(50):
            await reader.read(1 << 16)  # an answer, or the end
    writer.close()


async def by_hand(stack: Stack) -> AsyncIterator[str]:
    """Call the services with marked pods; yield what they answer or why not."""
    metadata = (("authorization", f"Bearer {TOKEN}"),)
    good = json.dumps(marked("by-hand")).encode()
    for content in (good, good[:-9], good.replace(b'"env": [', b'"env": 7, "x": ['), MARK.encode()):
        request = filter_pb2.FilterRequest(pod=types_pb2.Pod(json=content), profile=MARK)
        binding = binder_pb2.BindRequest(
            namespace="default", name="p", uid="u", node="s1", decision=content
        )
        sent = (("filter", "FilterService/Filter", request),)
        for service, method, message in (*sent, ("binder", "BinderService/Bind", binding)):
            async with grpc.aio.insecure_channel(stack.addresses.services[service]) as channel:
                unary: Any = channel.unary_unary(f"/moorage.v1.{method}")
                try:
                    await unary(message.SerializeToString(), timeout=50, metadata=metadata)
                except grpc.aio.AioRpcError as error:
                    yield str(error.details()).replace(f"profile '{MARK}'", "")


async def test_no_secret_of_a_pod_or_a_caller_comes_out_anywhere(stack: Stack) -> None:
    random = Random(17)
    await stack.create([node("s1")])
    await stack.create(pods=[marked("secret"), marked("stuck", nodeSelector={"no": "where"})])
    await stack.until(lambda: is_bound(stack, "secret"))
    found = [answer.decode(errors="replace") async for answer in answers(stack, random)]
    assert len(found) > 4 * BROKEN
    found += [message async for message in by_hand(stack)]
    ports = (stack.addresses.extender, stack.addresses.admin)
    await asyncio.gather(*(no_http(port, line) for port in ports for line in HEADS))
    found += [await text(stack, f"{stack.addresses.admin}/{path}") for path in PATHS]
    found.append(await text(stack, f"{stack.addresses.api}{EVENTS}"))
    log = [file.read_text(errors="replace") for file in stack.trace.parent.glob("*.log")]
    assert len(log) > 5
    leaks = [leak(where) for where in (*found, *log) if MARK in where]
    assert not leaks, leaks[:5]


PATHS = (
    *("metrics", "readyz", "decisions/default/secret", "decisions/default/stuck"),
    "decisions/default/broken",
)
EVENTS = "/apis/events.k8s.io/v1/events"


def leak(where: str) -> str:
    """Return the surroundings of the first mark."""
    at = where.index(MARK)
    return where[max(at - 300, 0) : at + 100]


async def is_bound(stack: Stack, name: str) -> bool:
    answer = json.loads(await text(stack, f"{stack.addresses.api}/{KEPT['pods']}/{name}"))
    return bool(answer["spec"].get("nodeName"))


async def text(stack: Stack, url: str) -> str:
    timeout = aiohttp.ClientTimeout(total=50)
    async with stack.session.get(url, timeout=timeout) as response:
        return await response.text()
