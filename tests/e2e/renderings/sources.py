"""The renderings: everything of deploy/ that a user applies, as objects."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.build import find
from tests.scenarios.planes import ROOT, Object

OVERLAYS = ROOT / "deploy" / "kustomize" / "overlays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One way to install Moorage."""

    name: str
    command: tuple[str, ...]

    def objects(self) -> list[Object]:
        """Render it."""
        program, *words = self.command
        run = subprocess.run(
            [str(find(program)), *words], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        return [obj for obj in yaml.safe_load_all(run.stdout) if obj]


def renderings() -> list[Rendering]:
    """Return all that deploy/ has."""
    return [kustomize(path.parent) for path in sorted(OVERLAYS.glob("*/kustomization.yaml"))]


def kustomize(folder: Path) -> Rendering:
    return Rendering(name=folder.name, command=("kubectl", "kustomize", str(folder)))
