"""A replica proves by its certificate what it is: one of shadows cannot pose as a live one."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from moorage_host.rpc.errors import OTHER_NAME
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import filter_service, gateway, scorer_service
from tools.waiting import until

OURS = authority()
WITH_SHADOW = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}]}}
  shadow: {plugins: {filter: {disabled: [{name: NodeName}]}}}
"""


@pytest.mark.parametrize(
    ("asked", "named", "takes_part"),
    [
        ("filter", "filter", True),
        ("filter", "shadow-filter", False),
        ("filter", "scorer", False),
        ("shadow-filter", "shadow-filter", True),
        ("shadow-filter", "filter", False),
    ],
)
async def test_a_replica_takes_part_as_what_its_certificate_names(
    tmp_path: Path, asked: str, named: str, takes_part: bool
) -> None:
    def folder(*names: str) -> Path:
        own = [f"moorage-{name}" for name in names]
        return write_folder(tmp_path / "-".join(names), OURS, *own, "127.0.0.1")

    (tmp_path / "policy.yaml").write_text(WITH_SHADOW)
    live = folder("filter", "scorer", "live")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        replica = await enter(filter_service(tls=folder(named)))
        targets: dict[str, Any] = {"filters": replica}
        if asked == "shadow-filter":
            filters = await enter(filter_service(tls=live))
            targets = {"filters": filters, "shadow_filter": (replica,)}
        process = await enter(
            gateway(
                tmp_path,
                scorer=await enter(scorer_service(tls=live)),
                config=tmp_path / "policy.yaml",
                tls=folder("gateway", "operator"),
                **targets,
            )
        )
        refused = f"{asked} at {replica}: UNAVAILABLE"
        said = ""

        async def is_known() -> bool:
            nonlocal said
            said = str((await process.get("/readyz"))[1])
            is_ready = process.sample("moorage_replicas_ready", service=asked) == 1
            return is_ready or refused in said

        await until(is_known)
        assert (process.sample("moorage_replicas_ready", service=asked) == 1) is takes_part
        if not takes_part:
            assert OTHER_NAME in said
