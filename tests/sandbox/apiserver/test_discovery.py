"""What clients read before they ask for objects, and the server as a process of its own."""

import asyncio
import json
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from sandbox.apiserver.resources.table import BUILT_IN, ApiResource
from tests.forked import forked
from tests.sandbox.apiserver.support import EVENTS, Http


async def test_groups_lead_to_versions_and_versions_to_resources(http: Http) -> None:
    groups = {each["name"]: each for each in (await http.get("/apis")).body["groups"]}
    assert "batch" in groups
    events = groups["events.k8s.io"]["preferredVersion"]["groupVersion"]
    listed = (await http.get(f"/apis/{events}")).body
    assert listed["groupVersion"] == "events.k8s.io/v1"
    assert [each["name"] for each in listed["resources"]] == ["events"]
    core = {each["name"]: each for each in (await http.get("/api/v1")).body["resources"]}
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods/binding"]["verbs"] == ["create"]
    assert core["nodes"]["namespaced"] is False
    assert (await http.get("/api")).body["versions"] == ["v1"]


@pytest.mark.parametrize("resource", BUILT_IN, ids=lambda row: f"{row.group}/{row.plural}")
async def test_every_resource_supports_server_side_validation(
    http: Http, resource: ApiResource
) -> None:
    """kubectl create and apply look for this before they send anything."""
    index = (await http.get("/openapi/v3")).body["paths"]
    prefix = "apis" if resource.group else "api"
    link = index[f"{prefix}/{resource.api_version}"]["serverRelativeURL"]
    paths = (await http.get(link)).body["paths"].values()
    patches = {p["patch"]["x-kubernetes-group-version-kind"]["kind"]: p["patch"] for p in paths}
    parameters = [each["name"] for each in patches[resource.kind]["parameters"]]
    assert "fieldValidation" in parameters


async def test_an_event_is_the_same_in_both_api_versions(http: Http) -> None:
    view = "/apis/events.k8s.io/v1/namespaces/default/events"
    about = {"kind": "Pod", "name": "web", "namespace": "default"}
    written = {
        "metadata": {"generateName": "web."},
        "regarding": about,
        "note": "Successfully assigned default/web to n1",
        "reason": "Scheduled",
        "action": "Binding",
        "type": "Normal",
        "reportingController": "default-scheduler",
        "reportingInstance": "host-1",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    created = await http.create(view, written)
    assert created["apiVersion"] == "events.k8s.io/v1"
    assert created["note"] == written["note"]
    (core,) = (await http.get(EVENTS)).body["items"]
    assert core["apiVersion"] == "v1"
    assert core["message"] == written["note"]
    assert core["involvedObject"] == about
    assert core["reportingComponent"] == "default-scheduler"
    assert core["metadata"] == created["metadata"]
    for path, field in ((view, "regarding"), (EVENTS, "involvedObject")):
        assert len(await http.names(f"{path}?fieldSelector={field}.name=web")) == 1
        assert len(await http.names(f"{path}?fieldSelector={field}.name=db")) == 0


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


async def test_sigterm_ends_it_even_with_a_watch_open() -> None:
    async with forked(MODULE) as server, aiohttp.ClientSession() as session:
        api = (await server.event())["api"]
        async with session.get(f"{api}/api/v1/namespaces?watch=1") as watch:
            await watch.content.readline()
            server.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(50):
                assert await server.process.wait() == 0


async def test_a_port_that_is_taken_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with forked(MODULE, f"--port={port}") as server:
            code, errors = await server.ended()
    assert code == 1
    assert f"cannot serve on 127.0.0.1:{port}" in errors
    assert "Traceback" not in errors
