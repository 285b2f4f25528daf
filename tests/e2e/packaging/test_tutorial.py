"""The whole tutorial works as it is written: installed by pip, and beside a real kube-scheduler.

It needs the package index. No node runs pods: the last section is left to tests/e2e/renderings,
which runs what is installed.
"""

from pathlib import Path

import pytest

from tests.docs.walkthroughs.page import PODS, TUTORIAL, steps
from tests.docs.walkthroughs.session import session
from tests.scenarios.world import World
from tools.build import find
from tools.planes.embedded import ROOT
from tools.planes.objects import node
from tools.planes.real import RealPlane

ZONE = "topology.kubernetes.io/zone"


@pytest.mark.timeout(600)
async def test_the_whole_tutorial_works_as_shown(tmp_path: Path) -> None:
    folder = {name: tmp_path / name for name in ("plane", "programs", "home/.kube")}
    for path in folder.values():
        path.mkdir(parents=True)
    for program in ("kubectl", "kube-scheduler"):
        (folder["programs"] / program).symlink_to(find(program))
    home = tmp_path / "home"
    (home / "moorage").symlink_to(ROOT)  # the reader's clone
    async with World.bare(RealPlane(folder["plane"])) as world:
        (folder["home/.kube"] / "config").write_text(world.plane.kubeconfig("admin").read_text())
        await world.create(
            *(node(f"node-000{i}", labels={ZONE: f"zone-{i + 1}"}) for i in range(3))
        )
        async with session(home, folder["programs"], HOME=str(home)) as reader:
            await reader.run(step for step in steps(TUTORIAL) if step.section != PODS)
