"""What clients read before they ask for objects, and the server as a process of its own."""

import json
import socket
from pathlib import Path

import aiohttp

from tests.forked import forked
from tests.sandbox.apiserver.support import Http


async def test_groups_lead_to_versions_and_versions_to_resources(http: Http) -> None:
    groups = {each["name"]: each for each in (await http.get("/apis")).body["groups"]}
    events = groups["events.k8s.io"]["preferredVersion"]["groupVersion"]
    listed = (await http.get(f"/apis/{events}")).body
    assert [each["name"] for each in listed["resources"]] == ["events"]
    core = {each["name"]: each for each in (await http.get("/api/v1")).body["resources"]}
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods/binding"]["verbs"] == ["create"]
    assert core["nodes"]["namespaced"] is False
    assert (await http.get("/api")).body["versions"] == ["v1"]


MODULE = "sandbox.apiserver"


async def test_it_says_where_it_listens_and_writes_a_kubeconfig(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with (
        forked(MODULE, "--port=0", f"--kubeconfig-out={kubeconfig}") as process,
        aiohttp.ClientSession() as session,
    ):
        api = (await process.event())["api"]
        server = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        assert server == api
        async with session.get(f"{server}/readyz") as reply:
            assert reply.status == 200


async def test_a_port_that_is_taken_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with forked(MODULE, f"--port={port}") as server:
            code, errors = await server.ended()
    assert code == 1
    assert f"cannot serve on 127.0.0.1:{port}" in errors
    assert "Traceback" not in errors
