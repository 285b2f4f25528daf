import subprocess
import sys

import pytest

HEAVY = ("grpc", "google", "aiohttp", "kubernetes_asyncio")


@pytest.mark.parametrize("module", ["moorage", "moorage.testing", "moorage.rules"])
def test_what_plugin_authors_import_brings_no_network_libraries(module: str) -> None:
    program = f"import {module}, sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "moorage" in loaded
    assert not set(HEAVY) & set(loaded)
