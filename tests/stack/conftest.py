"""Real processes, started once for all tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from cli.up.processes.stack import StackOptions
from tests.stack.stack import Stack

PLUGINS = Path(__file__).parent / "plugins"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """API server, gateway, filter, two scorers, binder and the stand-in for kube-scheduler."""
    directory = tmp_path_factory.mktemp("stack")
    patch = pytest.MonkeyPatch()
    patch.setenv("MOORAGE_TEST_TRACE", str(directory / "trace"))
    options = StackOptions(
        directory=directory,
        kubeconfig=None,
        config=PLUGINS.parent / "policy.yaml",
        profiles=("moorage", "traced"),
        plugins=(PLUGINS,),
        scorers=2,
        # A process that was killed has this long, less the margin, to come back on a busy machine.
        gateway_options=(
            "--cache-verify-share=1",
            "--http-timeout=12s",
        ),
    )
    try:
        async with Stack.started(options) as started:
            yield started
    finally:
        patch.undo()


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _cleared(stack: Stack) -> AsyncIterator[None]:
    yield
    await stack.clear()
    for phase in ("filter", "score"):
        assert await stack.metric("moorage_cache_differences_total", phase=phase) == 0
