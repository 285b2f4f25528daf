import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from moorage.errors import ConfigurationError
from moorage_host.kube import connect
from moorage_host.kube.config import find_server
from tests.needs import needed


def write_kubeconfig(path: Path, server: str, user: dict[str, Any] | None = None) -> Path:
    config = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "main", "user": "me"}}],
        "clusters": [{"name": "main", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": user or {"token": "unused"}}],
    }
    path.write_text(json.dumps(config))
    return path


async def test_a_given_file_comes_before_the_environments_and_that_before_the_one_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config", "http://home.example")
    given = write_kubeconfig(tmp_path / "given", "http://given.example")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "env", "http://env.example")))
    found = [(await find_server(file, None, tmp_path, 60)).host for file in (given, None)]
    monkeypatch.delenv("KUBECONFIG")
    found.append((await find_server(None, None, tmp_path, 60)).host)
    assert found == ["http://given.example", "http://env.example", "http://home.example"]
    with pytest.raises(ConfigurationError, match=r"no kubeconfig at .*nowhere.*--kubeconfig"):
        await connect(tmp_path / "nowhere")


V1 = "client.authentication.k8s.io/v1"
PROGRAM = {"apiVersion": V1, "command": "./credentials"}

SEVERAL: dict[str, tuple[list[tuple[str | None, Any]], str, str]] = {
    "the first file's context": ([("0", {"token": "a"}), ("1", {"token": "b"})], "0", "a"),
    "a later file without a context": ([("0", {"token": "a"}), ("", {"token": "b"})], "0", "a"),
    "a context of a later file": ([(None, {"token": "a"}), ("1", {"token": "b"})], "1", "b"),
    "a context of another file": ([("1", {"token": "a"}), (None, {"tokenFile": "t"})], "1", "of t"),
    "a token and its file": ([("0", {"token": "a", "tokenFile": "t"})], "0", "of t"),
    "fields without a value": ([("0", {"token": "a", "tokenFile": "", "exec": None})], "0", "a"),
    "a user without fields": ([("0", None)], "0", ""),
    "a program beside the file": ([("0", {"exec": PROGRAM})], "0", "of a program"),
}


@pytest.mark.parametrize(("files", "host", "token"), SEVERAL.values(), ids=SEVERAL)
async def test_kubeconfigs_mean_what_they_mean_to_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Any, host: str, token: str
) -> None:
    paths = [tmp_path / "empty", tmp_path / "missing"]
    paths[0].touch()
    for index, (context, user) in enumerate(files):
        name = str(index)
        (tmp_path / name).mkdir()
        (tmp_path / name / "t").write_text("of t\n")
        status = {"apiVersion": V1, "kind": "", "status": {"token": "of a program"}}
        (tmp_path / name / "credentials").write_text(f"#!/bin/sh\necho '{json.dumps(status)}'\n")
        (tmp_path / name / "credentials").chmod(0o700)
        config = {
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [
                {"name": name, "cluster": {"server": f"http://{name}.example"}},
                {"name": "0", "cluster": {"server": "http://second.example"}},
            ][: 1 + index],
            "users": [{"name": name, "user": user}],
        }
        paths.append(tmp_path / name / "config")
        paths[-1].write_text(json.dumps(config | {"current-context": context}))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    found = await find_server(None, None, tmp_path, 60)
    assert found.host == f"http://{host}.example"
    assert await found.authorization() == (token and f"Bearer {token}")


WRONG_URLS = ("api", "127.0.0.1:6443", "//h", "http://", "http://[::1", "http://h:99999", "ftp://h")
NO_CONTEXT = "current-context: x\ncontexts: []\nclusters: []\nusers: []\n"


@pytest.mark.parametrize("server", WRONG_URLS)
async def test_a_server_that_is_no_url_is_named(tmp_path: Path, server: str) -> None:
    file = write_kubeconfig(tmp_path / "file", server)
    with pytest.raises(ConfigurationError, match="server must be a URL such as") as caught:
        await connect(file)
    assert server.rstrip("/") in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "a string", "{}", NO_CONTEXT])
async def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"broken.*kubectl cluster-info"):
        await connect(file)


async def test_a_certificate_that_is_none_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    file = write_kubeconfig(tmp_path / "file", "https://main.example")
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    file.write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="certificate-authority"):
        await connect(file)


def at(server: TestServer, file: Path, user: dict[str, Any] | None = None) -> Path:
    return write_kubeconfig(file, str(server.make_url("")).rstrip("/"), user)


@asynccontextmanager
async def authorizing_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[TestServer]:
    """A server that answers with the Authorization header that it got."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("Authorization", ""))

    app = web.Application()
    app.router.add_route("*", "/whoami", handler)
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    try:
        yield server
    finally:
        await server.close()


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    async with authorizing_server() as server:
        user = {"tokenFile": str(tmp_path / "token")}
        file = at(server, tmp_path / "file", user)
        client = await connect(file, refresh_interval=0)
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer first"
        assert (await client.post("/whoami", b"{}")).body == b"Bearer first"
        (tmp_path / "token").write_text("second")
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer second"
        (tmp_path / "token").unlink()
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer second"
        await client.close()


@pytest.mark.parametrize(
    ("expires", "tokens"), [("2020-01-01T00:00:00Z", ["2", "3"]), (None, ["1", "1"])]
)
async def test_a_credential_plugin_is_asked_again_before_its_token_ends(
    tmp_path: Path, expires: str | None, tokens: list[str]
) -> None:
    async with authorizing_server() as server:
        user = {"exec": _plugin(tmp_path, expires=expires)}
        file = at(server, tmp_path / "file", user)
        client = await connect(file, refresh_interval=0)
        bodies = [(await client.request("GET", "/whoami", timeout=50)).body for _ in tokens]
        await client.close()
    assert bodies == [f"Bearer token-{number}".encode() for number in tokens]


async def test_a_proxy_of_the_environment_is_used_with_its_password_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stands in for the proxy: it sees the whole URL of the request."""
    seen: list[tuple[str, str]] = []

    async def proxy(request: web.Request) -> web.Response:
        seen.append((str(request.url), request.headers.get("Proxy-Authorization", "")))
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/whoami", proxy)
    async with TestServer(app) as server:
        monkeypatch.setenv("http_proxy", f"http://me:secret@{server.host}:{server.port}")
        client = await connect(write_kubeconfig(tmp_path / "file", "http://nowhere.example"))
        await client.request("GET", "/whoami", timeout=50)
        await client.post("/whoami", b"{}")
        await client.close()
    assert seen == [("http://nowhere.example/whoami", "Basic bWU6c2VjcmV0")] * 2
    async with authorizing_server() as direct:
        monkeypatch.setenv("no_proxy", direct.host)
        file = at(direct, tmp_path / "direct")
        client = await connect(file)
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer unused"
        await client.close()


async def test_credentials_of_netrc_are_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl does it; a token beside them used to make every request fail."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with authorizing_server() as server:
        file = at(server, tmp_path / "file")
        client = await connect(file)
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer unused"
        await client.close()


async def test_a_service_account_is_found_and_its_token_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = _certificate(tmp_path)
    (tmp_path / "token").write_text("first")
    async with authorizing_server(tls) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        client = await connect(service_account=tmp_path, refresh_interval=0)
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer first"
        (tmp_path / "token").write_text("second")
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer second"
        (tmp_path / "token").unlink()
        assert (await client.request("GET", "/whoami", timeout=50)).body == b"Bearer second"
        await client.close()


@pytest.mark.parametrize(("file", "text"), [("token", " "), ("ca.crt", "no certificate")])
async def test_a_broken_service_account_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    _certificate(tmp_path)
    (tmp_path / "token").write_text("good")
    (tmp_path / file).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigurationError, match=r"service account in .*--kubeconfig"):
        await connect(service_account=tmp_path)


def test_a_pod_does_not_load_the_kubernetes_client(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Loading it takes up to a second of processor time at each start."""
    _certificate(tmp_path)
    (tmp_path / "token").write_text("good")
    code = (
        "import asyncio, pathlib, sys; from moorage_host.kube import connect\n"
        f"asyncio.run(connect(service_account=pathlib.Path({str(tmp_path)!r})))\n"
        "sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    address = {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "443"}
    folder, env = pytestconfig.rootpath, {"PYTHONPATH": "sdk", **address}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, timeout=60, check=True)


def _plugin(folder: Path, *, expires: str | None) -> dict[str, Any]:
    """A credential plugin that counts how often it runs."""
    script = folder / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"count = pathlib.Path({str(folder / 'count')!r})\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        f"status = {{'token': f'token-{{number}}', 'expirationTimestamp': {expires!r}}}\n"
        "status = {key: value for key, value in status.items() if value}\n"
        f"answer = {{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': status}}\n"
        "print(json.dumps(answer))\n"
    )
    return {"apiVersion": V1, "command": sys.executable, "args": ["-S", str(script)]}


def _certificate(folder: Path) -> ssl.SSLContext:
    openssl = needed("openssl")
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    names = "-subj /CN=moorage-test -addext subjectAltName=IP:127.0.0.1 -out ca.crt -keyout key"
    subprocess.run(
        f"{command} {names}".split(), cwd=folder, check=True, capture_output=True, timeout=60
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "ca.crt", folder / "key")
    return context
