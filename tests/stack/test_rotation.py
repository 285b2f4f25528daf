"""Certificates are replaced, wrong or over while pods are filtered, scored and bound."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.certs.certificates import Issued
from moorage_host.rpc.errors import OTHER_NAME
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from sandbox.apiserver import ApiServer
from tests.conftest import EXAMPLES
from tests.forked import forked
from tools.inprocess.api import Api
from tools.inprocess.certificates import DAY, authority, write_folder
from tools.inprocess.gateway import IN_TREE, pod
from tools.planes.moorage import Moorage
from tools.planes.programs import Program
from tools.waiting import until

ROUNDS = 4 if EXAMPLES < 100 else 20
"""How often certificates are replaced; it takes a second each."""

SERVICES = ("filter", "scorer", "binder")
IDENTITIES = ("gateway", "filter", "scorer", "binder", "scheduler", "operator")
OLD, NEW = authority("old"), authority("new")
NODES = [f"n{number}" for number in range(20)]


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


@dataclass
class Installation:
    """Moorage's processes on an API server, and who calls them.

    Attributes:
        folder: The folders of certificates.
        caller: What kube-scheduler is.
    """

    folder: Path
    moorage: Moorage
    api: Api
    caller: Caller
    made: int = 0

    def context(self) -> ssl.SSLContext:
        """Return what kube-scheduler has with its certificate as it is now."""
        return client_context(read_certificate(self.folder / "scheduler"))

    def pod(self, name: str, **spec: Any) -> Any:
        """Create a pod of the profile."""
        return self.api.pod(name, schedulerName="moorage", **spec)

    async def place(self, count: int = 3) -> None:
        """Place pods, one after the other."""
        for _ in range(count):
            self.made += 1
            await self.caller.schedule(self.pod(f"placed-{self.made}"), NODES)

    async def readyz(self, name: str) -> str:
        """Ask a process as kubelet does, which does not check its certificate."""
        url = f"{self.moorage.admin_of(name)}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
            return f"{response.status} {await response.text()}"

    async def says(self, text: str, *names: str, has: bool = True) -> None:
        """Wait until `/readyz` of processes, by default of all, has a text, or has it no more."""

        async def do() -> bool:
            answers = [await self.readyz(name) for name in names or self.moorage.programs]
            return all((text in answer) is has for answer in answers)

        await until(do, 60)

    def check(self) -> None:
        """No call has failed, and every pod is on its node."""
        assert self.caller.calls.failed == []
        bound = {self.api.node_of(name) for name in self.caller.calls.bound}
        assert bound == {NODES[0]}


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[Installation]:
    """Start everything; pods are placed from here on."""
    write_all(folder, OLD, OLD.certificate, 0)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer())
        api = Api(server)
        (folder / "kubeconfig").write_text(server.kubeconfig())
        for name in NODES:
            amounts = {"cpu": "900", "memory": "900Gi", "pods": "9000"}
            meta = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            api.create("/api/v1/nodes", {**meta, "status": {"allocatable": amounts}})
        (folder / "policy.yaml").write_text(IN_TREE)
        moorage = Moorage(
            folder,
            lambda _: folder / "kubeconfig",
            services=("filter", "scorer", "binder"),
            certificates=folder,
        )
        await stack.enter_async_context(moorage.started())
        session = await stack.enter_async_context(aiohttp.ClientSession())
        context = client_context(read_certificate(folder / "scheduler"))
        caller = Caller(moorage.extender, session, context)
        probe = {"Pod": pod("probe"), "NodeNames": NODES}

        async def answers() -> bool:
            return bool(
                await caller.call("filter", probe) and await caller.call("prioritize", probe)
            )

        await until(answers)
        caller.calls = Calls()
        yield Installation(folder, moorage, api, caller)


async def test_no_call_fails_while_certificates_are_replaced_and_an_authority_is_removed(
    tmp_path: Path,
) -> None:
    both = OLD.certificate + NEW.certificate
    async with installed(tmp_path) as it:
        caller, running = it.caller, it.moorage.programs
        stop = asyncio.Event()

        async def work(number: int) -> None:
            for index in range(100_000):
                if stop.is_set():
                    return
                await caller.schedule(it.pod(f"p{number}-{index}"), NODES)

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
                caller.context = it.context()
                more = caller.calls.done + 6
                await until(lambda more=more: caller.calls.done >= more, 30)  # type: ignore[misc]
            stop.set()
        it.check()
        for program in running.values():
            assert "A replica is lost" not in program.log.read_text()
        admin = f"{it.moorage.admin}/metrics"
        operator = client_context(read_certificate(tmp_path / "operator"))
        async with caller.session.get(admin, ssl=operator, server_hostname="localhost") as response:
            resent = re.findall(
                r'^moorage_cycles_resent_total{cause="lost".*} (.*)$', await response.text(), re.M
            )
        assert set(resent) == {"0.0"}  # each replica has answered before its session was ended


EXPIRING = timedelta(seconds=15)
"""What is left of certificates when they are written: they have to be read before it is over."""

UNUSABLE: Mapping[str, tuple[Issued, timedelta, str]] = {
    "not valid yet": (OLD, DAY, "it is not valid before"),
    "expired": (OLD, -2 * DAY, "it expired at"),
    "of an authority that nobody believes": (NEW, timedelta(0), "has signed it"),
}
"""Who signs a certificate, when it begins, and what is said of it."""


async def test_whatever_is_wrong_with_certificates_no_pod_is_lost_and_it_is_said(
    tmp_path: Path,
) -> None:
    async with installed(tmp_path) as it:
        for signer, begin, sentence in UNUSABLE.values():
            for name in IDENTITIES[:4]:
                folder = tmp_path / name
                names = (f"moorage-{name}", "localhost")
                write_folder(folder, signer, *names, begin=begin, believed=OLD.certificate)
            await it.says("the certificate before stays active: cannot use")
            await it.says(sentence)
            it.caller.context = it.context()  # a new connection
            await it.place()
            write_all(tmp_path, OLD, OLD.certificate, 1)
            await it.says("stays active", has=False)
        it.check()
        for program in it.moorage.programs.values():
            log = program.log.read_text()
            for _, _, sentence in UNUSABLE.values():
                assert re.search(f"The certificate is not reloaded.*{sentence}", log)
            assert "A replica is lost" not in log

        # It is over under open streams: those go on, new connections are refused.
        await it.place()
        for name in IDENTITIES[:4]:
            names = (f"moorage-{name}", "localhost")
            write_folder(tmp_path / name, OLD, *names, begin=-DAY, life=DAY + EXPIRING)
        await it.says("less than a third of its life is left")
        await it.place()
        await it.says("expired at")
        await it.place()
        it.check()
        async with aiohttp.ClientSession() as session:
            new = Caller(it.moorage.extender, session, it.context())
            assert await new.call("filter", {"Pod": pod("new"), "NodeNames": NODES}) is None
            assert "certificate has expired" in new.calls.failed[0]
        write_all(tmp_path, OLD, OLD.certificate, 2)
        await it.says("expired at", has=False)
        it.caller.context = it.context()
        await it.place()
        it.check()

        # A filter with the name of another service: its stream goes on, the next one is refused.
        scorer = ("moorage-scorer", "localhost")
        write_folder(tmp_path / "filter", OLD, *scorer, life=3 * DAY)
        filters = it.moorage.programs["filter"]
        await logged([filters], "moorage-scorer", 1)
        await it.place()
        it.check()
        await filters.kill()
        await filters.start()
        await it.says(OTHER_NAME, "gateway")
        assert (await it.readyz("gateway")).startswith("503")
        asks = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "7"}}}
        waiting = it.pod("waiting", containers=[asks])  # no answer is kept for such pods
        await it.caller.schedule(waiting, NODES)
        (failed, *_) = it.caller.calls.failed
        assert "filter service is not available" in failed
        write_all(tmp_path, OLD, OLD.certificate, 3)
        await it.says("200 ", "gateway")
        it.caller.calls = Calls()
        await it.caller.schedule(waiting, NODES)
        it.check()


@pytest.mark.parametrize("module", ["gateway", *(f"services.{name}" for name in SERVICES)])
@pytest.mark.parametrize(("signer", "begin", "sentence"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_process_does_not_start_with_a_certificate_that_cannot_be_used(
    tmp_path: Path, module: str, signer: Issued, begin: timedelta, sentence: str
) -> None:
    folder = write_folder(tmp_path, signer, "moorage", begin=begin, believed=OLD.certificate)
    async with forked(module, f"--tls={folder}", "--log-format=text") as running:
        code, said = await running.ended()
    assert code == 1
    assert re.fullmatch(f"moorage [a-z]+: cannot use {folder}/tls.crt: .*{sentence}.*\n", said)
