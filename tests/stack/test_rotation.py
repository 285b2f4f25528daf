"""Certificates are replaced again and again while pods are filtered, scored and bound."""

import asyncio
import re
import ssl
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from cli.certs.certificates import Issued
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from sandbox.apiserver import ApiServer
from tests.conftest import EXAMPLES
from tools.inprocess.api import Api
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import IN_TREE, pod
from tools.planes.moorage import Moorage
from tools.planes.programs import Program
from tools.waiting import until

ROUNDS = 4 if EXAMPLES < 100 else 20
"""How often certificates are replaced; it takes a second each."""

IDENTITIES = ("gateway", "filter", "scorer", "binder", "scheduler", "operator")
OLD, NEW = authority("old"), authority("new")


@dataclass
class Calls:
    """What kube-scheduler's calls came to."""

    done: int = 0
    failed: list[str] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)


@dataclass
class Caller:
    """Calls the gateway as kube-scheduler, with the certificate that its folder has."""

    url: str
    session: aiohttp.ClientSession
    context: ssl.SSLContext
    calls: Calls = field(default_factory=Calls)

    async def call(self, verb: str, body: Any) -> Any:
        try:
            async with self.session.post(
                f"{self.url}/{verb}",
                json=body,
                ssl=self.context,
                server_hostname="moorage-gateway",
            ) as response:
                text = await response.text()
                assert response.status == 200, text
                answer = await response.json(content_type=None)
                assert not (isinstance(answer, dict) and answer.get("Error")), text
        except (aiohttp.ClientError, AssertionError) as error:
            self.calls.failed.append(f"{verb}: {error!r}")
            return None
        self.calls.done += 1
        return answer

    async def schedule(self, obj: Any, nodes: list[str]) -> None:
        """Filter, score and bind a pod."""
        request = {"Pod": obj, "NodeNames": nodes}
        await self.call("filter", request)
        await self.call("prioritize", request)
        metadata = obj["metadata"]
        bind = {"PodName": metadata["name"], "PodNamespace": "default"}
        await self.call("bind", bind | {"PodUID": metadata["uid"], "Node": nodes[0]})
        self.calls.bound.append(metadata["name"])


def write_all(folder: Path, signer: Issued, believed: bytes, number: int) -> None:
    for name in IDENTITIES:
        names = (f"moorage-{name}", "localhost")
        life = timedelta(days=1, minutes=number)
        write_folder(folder / name, signer, *names, life=life, believed=believed)


async def logged(programs: Collection[Program], text: str, times: int) -> None:
    """Wait until each process has logged a sentence so often."""
    await until(lambda: all(each.log.read_text().count(text) >= times for each in programs), 30)


async def test_no_call_fails_while_certificates_are_replaced_and_an_authority_is_removed(
    tmp_path: Path,
) -> None:
    both = OLD.certificate + NEW.certificate
    write_all(tmp_path, OLD, OLD.certificate, 0)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer())
        api = Api(server)
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        nodes = [f"n{i}" for i in range(20)]
        for name in nodes:
            amounts = {"cpu": "900", "memory": "900Gi", "pods": "9000"}
            meta = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            api.create("/api/v1/nodes", {**meta, "status": {"allocatable": amounts}})
        (tmp_path / "policy.yaml").write_text(IN_TREE)
        moorage = Moorage(
            tmp_path,
            lambda _: tmp_path / "kubeconfig",
            services=("filter", "scorer", "binder"),
            certificates=tmp_path,
        )
        running = (await stack.enter_async_context(moorage.started())).programs
        session = await stack.enter_async_context(aiohttp.ClientSession())

        def context() -> ssl.SSLContext:
            return client_context(read_certificate(tmp_path / "scheduler"))

        caller = Caller(moorage.extender, session, context())
        probe = {"Pod": pod("probe"), "NodeNames": nodes}
        async with asyncio.timeout(30):
            while not (  # noqa: ASYNC110 - over HTTP
                await caller.call("filter", probe) and await caller.call("prioritize", probe)
            ):
                await asyncio.sleep(0.05)
        caller.calls = Calls()
        stop = asyncio.Event()

        async def work(number: int) -> None:
            for index in range(100_000):
                if stop.is_set():
                    return
                await caller.schedule(api.pod(f"p{number}-{index}"), nodes)

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(number))
            for number in range(1, ROUNDS + 1):
                share = number / ROUNDS
                signer = OLD if share < 0.5 else NEW
                believed = OLD.certificate if share < 0.25 else both
                if share > 0.75:
                    believed = NEW.certificate
                write_all(tmp_path, signer, believed, number)
                await logged(running.values(), "The certificate is reloaded", number)
                await logged([running["gateway"]], "A replica takes part", 2 * (number + 1))
                caller.context = context()
                more = caller.calls.done + 6
                await until(lambda more=more: caller.calls.done >= more, 30)  # type: ignore[misc]
            stop.set()
        assert caller.calls.failed == []
        for program in running.values():
            assert "A replica is lost" not in program.log.read_text()
        admin = f"{moorage.admin}/metrics"
        operator = client_context(read_certificate(tmp_path / "operator"))
        async with session.get(admin, ssl=operator, server_hostname="localhost") as response:
            resent = re.findall(
                r'^moorage_cycles_resent_total{cause="lost".*} (.*)$', await response.text(), re.M
            )
        assert set(resent) == {"0.0"}  # each replica has answered before its session was ended
        assert {api.node_of(name) for name in caller.calls.bound} == {nodes[0]}
