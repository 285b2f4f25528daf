"""A gateway with filters that depend on the whole cluster, and what it caches of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moorage import FilterPlugin, Node, Pod, Rejection, Scope
from tests.gateway.cycle.cache.caching import of_set
from tools.inprocess.api import Object, until
from tools.inprocess.gateway import Gateway, filter_service, gateway, ready, scorer_service

NAMES = ("n1", "n2", "n3")
TOO_HOT = Rejection("node is too hot", unresolvable=False)
TOO_OLD = Rejection("node is too old")


class Hot(FilterPlugin):
    """Rejects all nodes but the one that a pod's label names, for two reasons."""

    depends_on = Scope.CLUSTER

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if pod.labels.get("fits") == node.name:
            return None
        return TOO_OLD if node.name == "n3" else TOO_HOT


class Undeclared(Hot):
    """The same, but does not declare what it depends on."""


class Failing(Hot):
    """Fails for all pods."""

    depends_on = Scope.CLUSTER

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        raise ValueError("no")


def policy(*filters: str, failure_policy: str = "Abort") -> str:
    enabled = ", ".join(f"{{name: {name}}}" for name in filters)
    configs = ", ".join(f"{{name: {name}, failurePolicy: {failure_policy}}}" for name in filters)
    return (
        "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n"
        f"- plugins: {{filter: {{enabled: [{enabled}]}}}}\n  pluginConfig: [{configs}]\n"
    )


@asynccontextmanager
async def running(
    folder: Path, text: str = policy("Hot"), *, replicas: int = 1, **more: Any
) -> AsyncIterator[Gateway]:
    file = folder / "policy.yaml"
    file.write_text(text)
    plugins = (Hot, Undeclared, Failing)
    async with (
        filter_service(*plugins) as one,
        filter_service(*plugins) as other,
        scorer_service() as scorer,
        gateway(
            folder,
            filters=(one, other)[:replicas],
            scorer=scorer,
            config=file,
            **{"cache_pods": 32} | more,
        ) as process,
    ):
        await process.node(*NAMES)
        await ready(process)
        await until(lambda: process.sample("moorage_replicas_ready", service="filter") == replicas)
        yield process


def asked(process: Gateway) -> float:
    return process.sample("moorage_cycle_duration_seconds_count", phase="filter")


def cached(process: Gateway) -> float:
    return process.sample("moorage_cached_phases_total", phase="filter", extent="whole")


async def filter_equal_pods(process: Gateway, count: int = 3) -> list[Object]:
    return [await process.filter(of_set(f"p{number}"), *NAMES) for number in range(count)]


async def filter_record(process: Gateway, name: str) -> Object:
    _, answer = await process.get(f"/decisions/default/{name}")
    record: Object = answer["attempts"][0]["filter"]
    return record
