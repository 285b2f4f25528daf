from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage_host.kube import KubeClient, connect
from sandbox.apiserver import ApiServer
from tools.inprocess.api import Api


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
def api(server: ApiServer) -> Api:
    return Api(server)


@pytest.fixture
async def client(server: ApiServer, tmp_path: Path) -> AsyncIterator[KubeClient]:
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig())
    client = await connect(file)
    yield client
    await client.close()


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig())
    return file
