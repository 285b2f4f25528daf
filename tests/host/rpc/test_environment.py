"""gRPC's core reads its settings when it is imported: each process must have them before."""

import subprocess
import sys

import pytest

SHOW = """
import importlib, os, sys
from importlib.abc import MetaPathFinder

class Show(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "grpc":
            print(*(os.environ.get(f"GRPC_{name}") for name in (
                "VERBOSITY", "EXPERIMENTS", "ENABLE_FORK_SUPPORT", "SSL_CIPHER_SUITES",
            )))

sys.meta_path.insert(0, Show())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    [
        "gateway.__main__",
        "services.filter.__main__",
        "services.scorer.__main__",
        "services.binder.__main__",
    ],
)
def test_every_process_has_grpc_s_settings_before_grpc_is_imported(module: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", SHOW, module], check=True, capture_output=True, text=True
    )
    assert shown.stdout.split() == [
        "ERROR",
        "-event_engine_client,-event_engine_listener",
        "0",
        "ECDHE-PSK-CHACHA20-POLY1305",
    ]


def test_grpc_knows_the_experiments_that_are_set() -> None:
    script = "import moorage_host.rpc, grpc; grpc.insecure_channel('localhost:1').close()"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stderr == ""
