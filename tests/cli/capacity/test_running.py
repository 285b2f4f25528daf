"""`moorage capacity`, and `moorage up` with it, as processes: they begin, and they end."""

import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox.apiserver import ApiServer
from tests.cli.support import moorage
from tools.waiting import until

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/moorage-capacity"
ABSENT = "the API server does not serve karpenter.sh: is Karpenter installed?"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("capacity", "--admin=http://127.0.0.1:9"), id="by itself"),
        pytest.param(("up", "--capacity=karpenter"), id="beside up"),
    ],
)
async def test_at_sigterm_another_one_may_work_at_once(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    async with ApiServer() as api, aiohttp.ClientSession(api.url) as session:

        async def holder() -> str:
            async with session.get(LEASE) as answer:
                lease: Any = await answer.json()
            return str(lease.get("spec", {}).get("holderIdentity") or "")

        (tmp_path / "config").write_text(api.kubeconfig())
        async with moorage(tmp_path, *arguments, "--kubeconfig=config") as command:
            await command.line("nodes are asked of Karpenter")
            await until(lambda: ABSENT in command.stderr.read_text())
            assert await holder()
            command.signal(signal.SIGTERM)
            code, _ = await command.ended()
        assert code == 0
        assert await holder() == ""
