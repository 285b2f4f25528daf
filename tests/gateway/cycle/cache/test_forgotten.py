"""What is remembered of equal pods is forgotten with the policy, and with the replicas."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import free_ports
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    answered,
    caching,
    fill,
    noting,
    of_set,
    place_all,
    policy,
    replicas_are,
)
from tests.gateway.sharing import place, same
from tools.inprocess.api import until
from tools.inprocess.gateway import filter_service, scorer_service


async def test_another_policy_forgets_all(tmp_path: Path) -> None:
    asked = Asked()
    async with caching(tmp_path, *noting(asked), config_reload_interval=0.02) as process:
        await fill(process)
        await place_all(process, "first", "second", "third")
        asked.taken()
        text = policy(scores="{name: Likes, weight: 3}, {name: Equal}")
        (tmp_path / "policy.yaml").write_text(text)
        await until(lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == 1)
        fourth, fifth = await place_all(process, "fourth", "fifth")
        assert fourth["scores"] == {"n1": 25, "n2": 50, "n3": 75}
        same(fourth, fifth)
        assert asked.taken() == ([list(NAMES)], [["n1", "n2", "n3"]])


Service = Callable[..., Any]


@pytest.mark.parametrize(
    ("service", "serve", "answer"),
    [
        ("filter", filter_service, ([list(NAMES)], [])),
        ("scorer", scorer_service, ([], [["n1", "n2", "n3"]])),
    ],
)
async def test_a_replica_that_joins_or_is_lost_forgets_its_half(
    tmp_path: Path, service: str, serve: Service, answer: tuple[Any, Any]
) -> None:
    asked = Asked()
    kinds = noting(asked)
    plugin = kinds[0 if service == "filter" else 1]
    (port,) = free_ports(1)
    where = "filters" if service == "filter" else "scorer"
    async with caching(tmp_path, *kinds, also={where: f"127.0.0.1:{port}"}) as process:
        await fill(process)
        first, _ = await place_all(process, "first", "second")
        asked.taken()
        joining = serve(plugin, port=port)
        await joining.__aenter__()
        await replicas_are(process, service, 2)
        same(first, await place(process, of_set("third"), NAMES))
        assert asked.taken() == answer
        same(first, await place(process, of_set("fourth"), NAMES))
        assert asked.taken() == ([], [])
        await joining.__aexit__(None, None, None)
        await replicas_are(process, service, 1)
        same(first, await place(process, of_set("fifth"), NAMES))
        assert asked.taken() == answer


async def test_the_pods_that_came_last_are_kept(tmp_path: Path) -> None:
    async with caching(tmp_path, *noting(Asked()), cache_pods=1) as process:
        await fill(process)
        first, _ = await place_all(process, "first", "second")
        other = {"labels": {"app": "db"}}
        for name in ("other", "another"):
            same(first, await place(process, of_set(name, **other), NAMES))
        assert answered(process) == (4, 4)
        for number in range(3):
            same(first, await place(process, of_set(f"web-{number}"), NAMES))
            same(first, await place(process, of_set(f"db-{number}", **other), NAMES))
        assert answered(process) == (10, 10), "each made it forget the other"
        same(first, await place(process, of_set("last", **other), NAMES))
        assert answered(process) == (10, 10)


async def test_several_kinds_of_pods_are_kept_side_by_side(tmp_path: Path) -> None:
    async with caching(tmp_path, *noting(Asked())) as process:
        await fill(process)
        (first,) = await place_all(process, "first")
        for number in range(4):
            for app in "abc":
                made = of_set(f"{app}-{number}", labels={"app": app})
                same(first, await place(process, made, NAMES))
        assert answered(process) == (7, 7)
