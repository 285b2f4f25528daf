"""One API server, as a process, for all kubectl tests."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.kubectl.support import Kubectl


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    found = Kubectl(tmp_path_factory.mktemp("home"))
    command = [sys.executable, "-m", "sandbox.apiserver", "--kubeconfig-out"]
    with subprocess.Popen(
        [*command, str(found.kubeconfig)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            server.stdout.readline()
            yield found
        finally:
            server.terminate()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the objects of one test; the server is shared."""
    number = abs(hash(request.node.name)) % 10**8
    return f"web-{number}"
