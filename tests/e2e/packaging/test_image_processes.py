"""The processes of the image run as in a restricted pod, with real gRPC between them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.e2e.packaging.processes import Processes, started
from tools.build import find
from tools.image.isolated import Isolated
from tools.planes.objects import node, pod

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(
    image: Isolated, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Processes]:
    async with started(image, tmp_path_factory.mktemp("processes")) as running:
        await running.world.create(node("n1", labels={"nodeGroup": "1"}), node("n2"))

        async def known() -> bool:
            states = [
                await _grpcurl(running, kind, "GetState", {}) for kind in ("filter", "scorer")
            ]
            return all(state.get("nodeCount") == 2 for state in states)

        await running.world.until(known)
        yield running


async def test_every_process_runs_unprivileged_on_the_image(
    image: Isolated, processes: Processes
) -> None:
    assert len(processes.programs) == 4
    for program in processes.programs:
        assert program.running  # and /readyz was answered
        status = _status(program.pid)
        assert status["Uid"].split() == ["65532"] * 4
        assert status["CapEff"] == "0" * 16
        assert status["NoNewPrivs"] == "1"


async def test_the_gateway_answers_with_what_the_services_decide(processes: Processes) -> None:
    manifest = pod("p", "moorage", labels={"nodeGroup": "1"})
    manifest["metadata"] |= {"uid": "u", "namespace": "default"}
    body = {"Pod": manifest, "NodeNames": ["n1", "n2"]}
    kept = await _post(f"{processes.extender}/filter", body)
    assert kept["NodeNames"] == ["n1"]
    scores = await _post(f"{processes.extender}/prioritize", body)
    assert {score["Host"] for score in scores} == {"n1", "n2"}


async def test_the_binder_binds(processes: Processes) -> None:
    (made,) = await processes.world.create(pod("bound", "nobody"))
    names = {"namespace": "default", "name": "bound", "uid": made["metadata"]["uid"]}
    answer = await _grpcurl(processes, "binder", "Bind", {**names, "node": "n2"})
    assert answer["outcome"] == "OUTCOME_BOUND"
    assert (await processes.world.places())["bound"] == "n2"


def _status(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/status").read_text()
    return {name: value.strip() for name, value in re.findall(r"^(\w+):(.*)$", text, re.M)}


async def _post(url: str, body: object) -> Any:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json(content_type=None)


async def _grpcurl(processes: Processes, kind: str, method: str, data: object) -> Any:
    name = f"moorage.v1.{kind.capitalize()}Service/{method}"
    process = await asyncio.create_subprocess_exec(
        *(str(find("grpcurl")), "-plaintext", "-d", json.dumps(data)),
        *(processes.targets[kind], name),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return json.loads(output)
