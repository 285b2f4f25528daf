"""Every rendering is applied to a real API server, runs as it is rendered, and binds pods."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.renderings.cluster import Cluster
from tests.e2e.renderings.doctor import examined
from tests.e2e.renderings.installation import Installation
from tests.e2e.renderings.rights import given, unused, used
from tests.e2e.renderings.sources import RENDERINGS, objects_of
from tools.image.isolated import Isolated

Record = Callable[[str, object], None]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rendering", RENDERINGS)
async def test_a_rendering_works_as_it_is(
    rendering: str, image: Isolated, tmp_path: Path, record_property: Record
) -> None:
    objects = objects_of(rendering)
    async with Cluster.started(tmp_path, image) as cluster:
        installation = Installation(cluster, objects)
        await installation.install()
        record_property("applied", f"{len(objects)}/{len(objects)}")
        record_property("ready", await installation.ready())
        record_property("bound", await installation.schedule())
        wrong = await examined(installation)
        record_property("doctor", "ok" if not wrong else f"{len(wrong)} findings")
        assert not wrong, "\n".join(wrong)
        denied = used(cluster.plane.audit_log, "forbid")
        record_property("denied", len(denied))
        idle = unused(given(objects), cluster.plane.audit_log)
        record_property("unused rights", len(idle))
        assert (denied, idle) == (set(), [])
