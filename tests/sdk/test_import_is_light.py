import subprocess
import sys

HEAVY = ("grpc", "google", "aiohttp", "kubernetes_asyncio")
LIGHT = "moorage, moorage.testing, moorage.rules, moorage.measurements"


def test_what_plugin_authors_import_brings_no_network_libraries() -> None:
    program = f"import {LIGHT}, sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "moorage" in loaded
    assert not set(HEAVY) & set(loaded)
