"""Runs kubectl, which has kustomize and knows how to reach the cluster."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.errors import MoorageError

SECONDS = 60.0
"""How long one call may take."""


class InstallError(MoorageError):
    """The installation cannot go on; the message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl with the options that lead to a cluster."""

    program: str
    options: tuple[str, ...] = ()

    def kustomize(self, folder: Path) -> str:
        """Return what a kustomize folder renders."""
        return self._run(["kustomize", str(folder)])

    def apply(self, manifests: str) -> list[str]:
        """Apply objects server-side; return what became of each."""
        words = ["apply", "--server-side", "--field-manager=moorage-install", "-f", "-"]
        return self._run([*self.options, *words], manifests).splitlines()

    def get(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        """Return the objects of a kind in a namespace."""
        words = ["get", kind, f"--namespace={namespace}", "--output=json"]
        items: list[dict[str, Any]] = json.loads(self._run([*self.options, *words]))["items"]
        return items

    def server_version(self) -> str:
        """Return the cluster's version, such as v1.36.1, without what providers add to it."""
        found = json.loads(self._run([*self.options, "version", "--output=json"]))
        version: str = found["serverVersion"]["gitVersion"]
        return version.partition("-")[0].partition("+")[0]

    def _run(self, words: Sequence[str], given: str | None = None) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - kubectl
                [self.program, *words],
                input=given,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            command = " ".join(["kubectl", *words])
            raise InstallError(f"`{command}` took more than {SECONDS:g} s") from error
        if done.returncode:
            command = " ".join(["kubectl", *words])
            raise InstallError(f"`{command}` failed: {done.stderr.strip()}")
        return done.stdout


def find_kubectl(kubeconfig: Path | None, context: str | None) -> Kubectl:
    """Return the kubectl of this machine.

    Raises:
        InstallError: There is none.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise InstallError("kubectl is not installed, and its kustomize renders the manifests")
    given = {"--kubeconfig": kubeconfig, "--context": context}
    options = tuple(f"{option}={value}" for option, value in given.items() if value)
    return Kubectl(program=program, options=options)
