"""Profiles without filter or score plugins answer without asking a replica."""

from pathlib import Path

import pytest

from tests.gateway.scheduling.noting import NAMES, Asked, answered, decided, fill, noted, noting
from tools.inprocess.api import Object
from tools.inprocess.gateway import pod

NOTHING = "{multiPoint: {disabled: [{name: '*'}]}}"


def text(plugins: str) -> str:
    return (
        "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
        f"profiles: [{{plugins: {plugins}}}]\n"
    )


async def test_a_profile_without_plugins_lets_all_nodes_pass_without_an_opinion(
    tmp_path: Path,
) -> None:
    async with noted(tmp_path, text=text(NOTHING)) as process:
        await fill(process)
        answer = await process.filter(pod("p"), *NAMES, "new")
        assert answer["NodeNames"] == [*NAMES, "new"]
        assert answer["FailedNodes"] is None
        assert await process.prioritize(pod("p"), *NAMES) == []
        victims: Object = {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
        body = {"Pod": pod("p"), "NodeNameToMetaVictims": victims}
        _, kept = await process.call("preempt", body)
        assert kept == {"NodeNameToMetaVictims": victims}
        assert answered(process) == (0, 0)
        decision = await decided(process, "p")
        assert decision["filter"] == {"nodes": 6, "feasible": 6, "seconds": 0.0}


@pytest.mark.parametrize(
    ("plugins", "counts"),
    [
        ("{multiPoint: {disabled: [{name: '*'}]}, filter: {enabled: [{name: Fits}]}}", (1, 0)),
        ("{multiPoint: {disabled: [{name: '*'}]}, score: {enabled: [{name: Likes}]}}", (0, 1)),
    ],
)
async def test_only_phases_with_plugins_ask_replicas(
    tmp_path: Path, plugins: str, counts: tuple[float, float]
) -> None:
    async with noted(tmp_path, *noting(Asked()), text=text(plugins)) as process:
        await fill(process)
        answer = await process.filter(pod("p"), *NAMES)
        scores = await process.prioritize(pod("p"), *answer["NodeNames"])
        assert bool(scores) is bool(counts[1])
        assert answered(process) == counts
