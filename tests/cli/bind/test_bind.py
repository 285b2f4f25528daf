"""`moorage bind`: on an API server, with a clear message for whatever it refuses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from sandbox.apiserver import ApiServer
from tools.inprocess.api import Api
from tools.waiting import until

Bind = Callable[..., Coroutine[Any, Any, Result]]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
def api(server: ApiServer) -> Api:
    api = Api(server)
    api.node("n1")
    return api


@pytest.fixture
def bind(server: ApiServer, tmp_path: Path) -> Bind:
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig())

    async def run(*arguments: str) -> Result:
        words = ["bind", "--kubeconfig", str(file), *arguments]
        return await asyncio.to_thread(CliRunner().invoke, main, words)

    return run


async def test_a_pod_is_bound_and_then_found_bound(api: Api, bind: Bind) -> None:
    api.pod("web", schedulerName="nobody")
    first = await bind("default/web", "n1")
    assert (first.exit_code, first.output) == (0, "pod default/web is bound to node n1\n")
    assert api.node_of() == "n1"
    again = await bind("default/web", "n1")
    assert (again.exit_code, again.output) == (0, "pod default/web is bound to node n1 already\n")


async def test_a_pod_is_named_as_for_kubectl(api: Api, bind: Bind) -> None:
    for name, given in (("a", ("a",)), ("b", ("pod/b",)), ("c", ("po/c", "-n", "default"))):
        api.pod(name)
        result = await bind(*given, "n1")
        assert result.output == f"pod default/{name} is bound to node n1\n"


async def test_a_pod_that_replaces_the_one_that_was_read_is_not_bound(api: Api, bind: Bind) -> None:
    api.pod("web")
    posts = api.count("create", "pods/binding", delay_seconds=0.3)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bind("default/web", "n1"))
        await until(lambda: posts() == 1)
        api.delete("/api/v1/namespaces/default/pods/web")
        api.pod("web")
    result = running.result()
    assert result.exit_code == 1
    assert "it was replaced" in result.stderr
    assert api.node_of() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("default/ghost", "n1"), "there is no pod default/ghost"),
        (("default/web", "n9"), "there is no node n9: the pod would never run"),
        (("a/b/c", "n1"), "'a/b/c' is no pod: write POD, pod/POD or NAMESPACE/POD, such as "),
        (("/web", "n1"), "'/web' is no pod"),
        (("web", "n1", "-n", "no/where"), "'no/where' is no namespace"),
        (("default/web", "../n1"), "'../n1' is no name of a node"),
        (("default/bound", "n1"), "pod default/bound is bound to node n2, not n1"),
        (("default/gated", "n1"), "pod default/gated has scheduling gates: example.com/g"),
    ],
)
async def test_a_refusal_says_why(
    api: Api, bind: Bind, arguments: tuple[str, str], message: str
) -> None:
    api.pod("web")
    api.pod("bound", nodeName="n2")
    api.pod("gated", schedulingGates=[{"name": "example.com/g"}])
    result = await bind(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"moorage: {message}")
    assert len(result.stderr.splitlines()) == 1
    assert api.node_of("web") is None


@pytest.mark.parametrize("resource", ["pods", "nodes", "pods/binding"])
async def test_a_permission_that_is_missing_is_named(api: Api, bind: Bind, resource: str) -> None:
    api.pod("web")
    api.fault("create" if "/" in resource else "get", resource, status=403)
    result = await bind("default/web", "n1")
    assert result.exit_code == 1
    assert "API server answered 403" in result.stderr
    assert api.node_of() is None


async def test_an_api_server_that_is_gone_is_named(server: ApiServer, bind: Bind, api: Api) -> None:
    api.fault("get", "nodes", delay_seconds=30)
    await server.__aexit__(None, None, None)
    result = await bind("default/web", "n1")
    assert result.exit_code == 1
    assert result.stderr.startswith("moorage: ")
    assert len(result.stderr.splitlines()) == 1
