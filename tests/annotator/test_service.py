"""The annotator as people and Deployments run it."""

import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.errors import ConfigurationError
from sandbox.apiserver import ApiServer
from services.annotator.settings import AnnotatorSettings
from tests.annotator.test_rounds import annotations
from tests.cli.support import PATIENCE, Command, moorage
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tools.inprocess.api import Api
from tools.planes.objects import node
from tools.waiting import until

MODULE = "services.annotator"
GIB = 1024**3
READY = {"status": "ok"}


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Api:
    api = Api(server)
    for name in ("n1", "n2", "n3"):
        api.create("/api/v1/nodes", node(name))
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    return api


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        fake.measures(
            {
                "mean-free-cpu": {"n1": 6000, "n2": 700, "far": 1},
                "std-free-cpu": {"n1": 12.4, "n2": 0, "far": 1},
                "mean-free-memory": {"n1": 20 * GIB, "far": 1},
                "std-free-memory": {"n1": 0.5 * GIB, "far": 1},
            }
        )
        yield fake


def annotator(
    home: Path, prometheus: FakePrometheus, *more: str
) -> AbstractAsyncContextManager[Command]:
    given = ("--prometheus", prometheus.address, "--kubeconfig", "kubeconfig")
    admin = ("--admin-host=127.0.0.1", "--admin-port=0")
    return moorage(home, *given, *admin, *more, module=MODULE)


async def ended(home: Path, prometheus: FakePrometheus, *more: str) -> tuple[int, list[str], str]:
    """Run it to its end; return its exit code and what it wrote, line by line."""
    async with annotator(home, prometheus, *more) as command:
        code, errors = await command.ended()
    return code, command.lines, errors


@pytest.mark.parametrize(
    ("mode", "done", "amount"),
    [
        ("--once", "written", "written"),
        ("--dry-run", "would be written", "to be written"),
    ],
)
async def test_once_shows_what_was_measured_and_written(
    api: Api, prometheus: FakePrometheus, tmp_path: Path, mode: str, done: str, amount: str
) -> None:
    patches = api.count("patch", "nodes")
    code, lines, errors = await ended(tmp_path, prometheus, mode)
    assert (code, errors) == (0, "")
    assert [re.split("  +", line) for line in lines] == [
        ["n1", "cpu 6000m ±12m", "memory 20.00Gi ±0.50Gi", f"{done}: new"],
        ["n2", "cpu 700m ±0m", "memory -", f"{done}: new"],
        ["n3", "cpu -", "memory -", "not measured"],
        ["Prometheus measures 1 nodes that the cluster does not have, such as far"],
        [f"2 of 3 nodes {amount}, 0 unchanged, 1 not measured"],
    ]
    assert patches() == (2 if mode == "--once" else 0)
    assert annotations(api, "n1").get("std-free-cpu") == ("12" if mode == "--once" else None)
    assert annotations(api, "n3") == {}


async def test_a_node_that_could_not_be_written_is_told_with_the_reason(
    api: Api, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    api.fault("patch", "nodes", name="n1", status=403)
    code, lines, _ = await ended(tmp_path, prometheus, "--once")
    assert code == 1
    (line,) = (line for line in lines if line.startswith("n1 "))
    assert "failed: PATCH /api/v1/nodes/n1: API server answered 403 Forbidden" in line
    assert lines[-1] == "1 of 3 nodes written, 0 unchanged, 1 not measured, 1 failed"
    assert annotations(api, "n2")


async def test_tokens_and_timeouts_are_those_of_the_options(
    api: Api, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret\n")
    given = ("--once", "--bearer-token-file=token", "--node-label=host", "--window=3m")
    prometheus.measures({"mean-free-cpu": {"n1": 1}}, label="host")
    code, _, _ = await ended(tmp_path, prometheus, *given, "--prefix=example.com/")
    assert code == 0
    ((_, _, form, headers),) = prometheus.requests
    assert headers["Authorization"] == "Bearer secret"
    assert "sum by (host)" in form["query"]
    assert "[3m:12s]" in form["query"]
    assert annotations(api, "n1")["example.com/mean-free-cpu"] == "1"


class Service:
    """The command without --once."""

    def __init__(self, command: Command, admin: str) -> None:
        self.command = command
        self._admin = f"http://{admin}"

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(self._admin + path) as answer:
            return answer.status, await answer.text()

    async def becomes(self, status: int) -> dict[str, Any]:
        """Wait until /readyz answers with a status; return what it says."""

        async def has_become() -> bool:
            return (await self.get("/readyz"))[0] == status

        await until(has_become, PATIENCE)
        answer: dict[str, Any] = json.loads((await self.get("/readyz"))[1])
        return answer

    async def metrics(self) -> dict[str, float]:
        _, text = await self.get("/metrics")
        found = re.findall(r"^(?:moorage_annotator_)(\S+) (\S+)$", text, re.M)
        return {name: float(value) for name, value in found}


@pytest.fixture
async def service(api: Api, prometheus: FakePrometheus, tmp_path: Path) -> AsyncIterator[Service]:
    async with annotator(tmp_path, prometheus, "--interval=200ms") as command:
        said = json.loads(await command.line("{"))
        assert (said["event"], said["service"]) == ("serving", "annotator")
        yield Service(command, said["admin"])


async def test_rounds_go_on_until_a_signal(
    service: Service, api: Api, prometheus: FakePrometheus
) -> None:
    assert await service.becomes(200) == READY
    assert (await service.get("/livez"))[0] == 200
    prometheus.measures({"mean-free-cpu": {"n1": 3000, "n3": 1}})
    await until(lambda: annotations(api, "n3"), PATIENCE)
    await until(lambda: annotations(api, "n1")["mean-free-cpu"] == "3000", PATIENCE)

    async def are_over() -> bool:  # a round counts once it is over
        return (await service.metrics()).get('rounds_total{result="ok"}', 0) >= 2

    await until(are_over, PATIENCE)
    found = await service.metrics()
    assert found['patches_total{result="written"}'] >= 4
    assert found['nodes{state="measured"}'] == 2
    assert found['nodes{state="unmeasured"}'] == 1
    assert found["samples_total"] > 0
    assert found["last_success_timestamp_seconds"] > 1.7e9
    service.command.signal(signal.SIGTERM)
    code, _ = await service.command.ended()
    assert code == 0


async def test_a_dead_prometheus_shows_and_removes_nothing(
    service: Service, api: Api, prometheus: FakePrometheus
) -> None:
    await service.becomes(200)
    before = annotations(api, "n1")
    prometheus.status = 503
    (check,) = (await service.becomes(503))["checks"]
    assert check["name"] == "rounds"
    assert check["reason"].startswith("cannot query Prometheus at")
    found = await service.metrics()
    assert found['rounds_total{result="failed"}'] >= 1
    assert annotations(api, "n1") == before
    prometheus.status = 200
    assert await service.becomes(200) == READY
    service.command.signal(signal.SIGTERM)
    code, errors = await service.command.ended()
    logged = [json.loads(line)["event"] for line in errors.splitlines()]
    assert (code, logged) == (
        0,
        [
            "Nodes are annotated.",
            "A round failed; annotations stay as they are.",
            "Nodes are annotated.",
            "The annotator stops.",
        ],
    )


async def test_rights_that_are_missing_make_it_unready(
    api: Api, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    api.count("patch", "nodes", status=403)
    async with annotator(tmp_path, prometheus, "--interval=200ms") as command:
        service = Service(command, json.loads(await command.line("{"))["admin"])
        patches = 'patches_total{result="failed"}'

        async def failed_twice() -> bool:
            return (await service.metrics()).get(patches, 0) >= 2

        await until(failed_twice, PATIENCE)
        (check,) = (await service.becomes(503))["checks"]
        assert re.match("none of 2 nodes could be written: .* 403 Forbidden", check["reason"])


async def test_a_signal_ends_it_while_the_api_server_is_silent(
    api: Api, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    patches = api.count("patch", "nodes", delay_seconds=60)
    async with annotator(tmp_path, prometheus) as command:
        await command.line("{")
        await until(lambda: patches() == 2, PATIENCE)
        command.signal(signal.SIGTERM)
        code, _ = await command.ended()
    assert code == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prometheus": ""}, "--prometheus must be given"),
        ({"prometheus": "prometheus:9090"}, "an address without credentials"),
        ({"prometheus": "http://user:secret@p"}, "an address without credentials"),
        ({"username": "me"}, "username and passwordFile need each other"),
        ({"node_label": "a-b"}, "the name of a Prometheus label"),
        ({"node_label": "a", "node_format": "b"}, 'nodeFormat "b" must contain {name}'),
        ({"prefix": "a b/"}, '--prefix is "a b/", and not like example.com/'),
    ],
)
def test_a_setting_that_is_wrong_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        AnnotatorSettings(**{"prometheus": "http://p", **given}).source()  # type: ignore[arg-type]


async def test_a_setting_that_is_wrong_is_one_line(
    prometheus: FakePrometheus, api: Api, tmp_path: Path
) -> None:
    code, _, errors = await ended(tmp_path, prometheus, "--prefix=a b/")
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith('moorage annotator: --prefix is "a b/"')
