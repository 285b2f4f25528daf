"""Runs the real kubectl: that of the control plane of the scenarios, or the one on the machine."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tools.build import find, is_there


def program() -> str | None:
    """Return the newest kubectl that needs no building, if there is one."""
    if os.environ.get("MOORAGE_E2E") or is_there("kubectl"):
        return str(find("kubectl"))
    return shutil.which("kubectl")


KUBECTL = program()


class Kubectl:
    """Runs kubectl with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.kubeconfig = home / "kubeconfig"
        self.environment = {
            "HOME": str(home),
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": os.environ["PATH"],
        }

    def start(self, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
        assert KUBECTL, "kubectl is not installed, and MOORAGE_REQUIRE_ALL=1 requires it"
        return subprocess.Popen(
            [KUBECTL, *arguments],
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Run it to its end and return what it printed."""
        with self.start(*arguments, stdin=subprocess.PIPE) as process:
            printed, _ = process.communicate(stdin, timeout=30)
        assert process.returncode == code, printed
        return printed

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run("get", *arguments, "-o", "json"))
