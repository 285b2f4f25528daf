"""Objects of additional kinds are followed when plugins read them, before the first cycle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from cli.up.processes import free_ports
from gateway.cluster.kinds import AdditionalKinds
from gateway.cluster.metrics import WatchMetrics
from gateway.cluster.objects import ObjectSink, ObjectTable, decode_object
from moorage import PERSISTENT_VOLUMES, STATEFUL_SETS, FilterPlugin, Nodes, Pod, Rejection, Verdicts
from moorage.models import ObjectKind, ObjectName
from moorage_host.kube import connect
from sandbox.apiserver import ApiServer
from sandbox.apiserver.resources.table import Target, parse
from tools.inprocess.api import Api
from tools.inprocess.gateway import Gateway, filter_service, plane, pod, policy_of, ready
from tools.waiting import until

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
Running = AbstractAsyncContextManager[Gateway]
OPTIONAL_SETS = ObjectKind("apps/v1", "statefulsets", optional=True)
POLICY = policy_of("{filter: {enabled: [{name: Replicated}]}}")


class Replicated(FilterPlugin):
    """Lets pods run if there is a StatefulSet of their name with more than one replica."""

    reads = (STATEFUL_SETS,)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        found = nodes.objects(STATEFUL_SETS).get(pod.name, pod.namespace)
        none = found is None or found["spec"]["replicas"] < 2
        return nodes.verdicts().reject([none] * len(nodes), Rejection("not replicated"))


class OptionallyReplicated(FilterPlugin):
    """Rejects all nodes unless there is a StatefulSet, a kind that servers need not have."""

    reads = (OPTIONAL_SETS,)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        none = not len(nodes.objects(OPTIONAL_SETS))
        return nodes.verdicts().reject([none] * len(nodes), Rejection("not replicated"))


def stateful_set(name: str, replicas: int = 2, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **metadata}
    kind = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    labels = {"app": name}
    selected = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}},
    }
    return {**kind, "metadata": metadata, "spec": {"replicas": replicas, **selected}}


def running(folder: Path, policy: str = POLICY, **more: Any) -> Running:
    return plane(folder, Replicated, policy=policy, waits=False, **more)


def without_filter(folder: Path, port: int, policy: str = POLICY) -> Running:
    """Run a gateway that expects a filter at *port*, where there is none yet."""
    return plane(folder, policy=policy, waits=False, filters=f"127.0.0.1:{port}")


async def problems_of(found: Gateway) -> dict[str, str]:
    status, answer = await found.get("/readyz")
    assert status == 503
    return {check["name"]: check["reason"] for check in answer["checks"]}


def target(name: str) -> Target:
    return parse(f"{SETS}/{name}")


async def verdict(found: Gateway, name: str) -> str:
    answer = await found.filter(pod(name), "n1")
    assert answer["Error"] == ""
    rejected: dict[str, str] | None = answer["FailedAndUnresolvableNodes"]
    return (rejected or {}).get("n1", "")


async def becomes(found: Gateway, name: str, expected: str) -> None:
    async def is_verdict() -> bool:
        return await verdict(found, name) == expected

    await until(is_verdict)


async def test_verdicts_follow_objects_as_they_come_change_and_go(tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        await found.node("n1")
        await ready(found)
        assert await verdict(found, "db") == "not replicated"
        found.api.create(SETS, stateful_set("db"))
        await becomes(found, "db", "")
        assert found.sample("moorage_cache_size", type="statefulsets.apps") == 1
        full = found.sample("moorage_session_sent_bytes_total", service="filter", part="full")
        found.api.server.cluster.update(target("db"), stateful_set("db", replicas=1))
        await becomes(found, "db", "not replicated")
        found.api.delete(f"{SETS}/db")
        await until(lambda: found.sample("moorage_cache_size", type="statefulsets.apps") == 0)
        again = found.sample("moorage_session_sent_bytes_total", service="filter", part="full")
        assert again == full


async def test_no_kind_is_followed_that_no_enabled_plugin_reads(tmp_path: Path) -> None:
    async with running(
        tmp_path, policy=POLICY.replace("filter: {", "score: {").replace("Replicated", "Equal")
    ) as found:
        asked = found.api.count("*", "statefulsets")
        await ready(found)
        await found.node("n1")
        assert (await found.filter(pod("db"), "n1"))["NodeNames"] == ["n1"]
        assert asked() == 0
        assert "statefulsets.apps" not in str(await found.get("/readyz?verbose"))


@pytest.mark.parametrize("status", [403, 404])
async def test_a_kind_that_cannot_be_read_is_named_with_its_plugin_and_the_missing_right(
    tmp_path: Path, status: int
) -> None:
    port = free_ports(1)[0]
    async with without_filter(tmp_path, port) as found:
        found.api.count("*", "statefulsets", status=status)
        await found.node("n1")
        async with filter_service(Replicated, port=port):
            await _check_refused(found, status)


async def _check_refused(found: Gateway, status: int) -> None:
    refused = {"resource": "statefulsets.apps", "reason": "refused"}
    await until(lambda: found.sample("moorage_watch_restarts_total", **refused) > 0)
    problems = await problems_of(found)
    objects = problems["objects"]
    assert objects.startswith("statefulsets.apps, read by Replicated: not read yet: GET /apis")
    assert f"API server answered {status}" in objects
    assert "needs the verbs list and watch for statefulsets in the API group apps" in objects
    assert "waits for objects that its plugins read" in problems["filter"]
    # Once it may, it goes on by itself, and with what is there.
    found.api.create(SETS, stateful_set("db"))
    found.api.faults.clear()
    await ready(found)
    assert await verdict(found, "db") == ""


async def test_an_optional_kind_that_is_not_served_has_no_objects(tmp_path: Path) -> None:
    policy = POLICY.replace("Replicated", "OptionallyReplicated")
    port = free_ports(1)[0]
    async with without_filter(tmp_path, port, policy) as found:
        asked = found.api.count("*", "statefulsets", status=404)
        await found.node("n1")
        async with filter_service(OptionallyReplicated, port=port):
            await ready(found)
            assert asked() > 0
            assert await verdict(found, "db") == "not replicated"
            # Once it is served, as after an upgrade, its objects come by themselves.
            found.api.create(SETS, stateful_set("db"))
            found.api.faults.clear()
            await becomes(found, "db", "")
            # When it is served no longer, they are gone.
            found.api.count("*", "statefulsets", status=404)
            found.api.faults.drop_watches()
            await becomes(found, "db", "not replicated")
            await ready(found)


async def test_objects_stay_while_no_replica_is_there(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    async with without_filter(tmp_path, port) as found:
        found.api.create(SETS, stateful_set("db"))
        async with filter_service(Replicated, port=port):
            await ready(found)
        await until(lambda: not found.sample("moorage_replicas_ready", service="filter"))
        assert found.sample("moorage_cache_size", type="statefulsets.apps") == 1


async def test_a_broken_watch_of_a_kind_misses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        found.api.create(SETS, stateful_set("old"))
        await found.node("n1")
        await ready(found)
        await becomes(found, "old", "")
        found.api.faults.expire_watches("statefulsets")
        found.api.delete(f"{SETS}/old")
        found.api.create(SETS, stateful_set("new"))
        await becomes(found, "new", "")
        assert await verdict(found, "old") == "not replicated"


async def test_an_object_that_is_too_large_is_left_out_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path, max_object_bytes=2000) as found:
        large: dict[str, Any] = {"annotations": {"note": "x" * 3000}}
        found.api.create(SETS, stateful_set("large", **large))
        found.api.create(SETS, stateful_set("grows"))
        await found.node("n1")
        await ready(found)
        assert await verdict(found, "large") == "not replicated"
        assert await verdict(found, "grows") == ""
        counted = {"resource": "statefulsets.apps"}
        assert found.sample("moorage_refused_objects_total", **counted) == 1
        found.api.server.cluster.update(target("grows"), stateful_set("grows", **large))
        await becomes(found, "grows", "not replicated")
        assert found.sample("moorage_refused_objects_total", **counted) == 2


def test_what_means_nothing_is_not_kept() -> None:
    metadata = {
        "name": "db",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
    }
    obj = {"apiVersion": "v1", "kind": "X", "metadata": metadata, "data": {"x": "1"}}
    read = decode_object(msgspec.json.encode(obj))
    kept = {"name": "db", "namespace": "default", "uid": "u", "annotations": {"a": "b"}}
    assert (read.uid, read.namespace, read.name) == ("u", "default", "db")
    assert msgspec.json.decode(read.json) == {"metadata": kept, "data": {"x": "1"}}


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"metadata": []}', b'{"metadata": {"name": 1}}'])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_object(text)


def test_a_change_that_means_nothing_is_no_change() -> None:
    recorded: list[ObjectName] = []
    table = ObjectTable(recorded.append)
    sink = ObjectSink(table, STATEFUL_SETS, limit=1000, refused=lambda: None)
    for version in ("1", "2"):
        obj = stateful_set("db", uid="u", resourceVersion=version)
        sink.put(decode_object(msgspec.json.encode(obj)))
    assert recorded == [ObjectName(STATEFUL_SETS, "default", "db")]
    sink.drop("u")
    sink.drop("u")
    assert recorded == [ObjectName(STATEFUL_SETS, "default", "db")] * 2
    assert list(table) == []


@pytest.mark.parametrize(
    ("kind", "path", "shown"),
    [
        (ObjectKind("v1", "configmaps"), "/api/v1/configmaps", "configmaps"),
        (
            ObjectKind("example.com/v1beta1", "racks"),
            "/apis/example.com/v1beta1/racks",
            "racks.example.com",
        ),
    ],
)
def test_kinds_have_paths_and_names(kind: ObjectKind, path: str, shown: str) -> None:
    assert (kind.path, str(kind)) == (path, shown)


@asynccontextmanager
async def kinds_of(folder: Path) -> AsyncIterator[tuple[Api, ObjectTable, AdditionalKinds]]:
    async with ApiServer() as server, asyncio.TaskGroup() as group:
        (folder / "kubeconfig").write_text(server.kubeconfig())
        client = await connect(folder / "kubeconfig")
        table = ObjectTable(lambda _: None)
        families = WatchMetrics(CollectorRegistry())
        kinds = AdditionalKinds(client, table, families, limit=10_000)
        kinds.start(group)
        try:
            yield Api(server), table, kinds
        finally:
            kinds.stop()
            await client.close()


async def test_a_kind_is_followed_as_long_as_anyone_needs_it(tmp_path: Path) -> None:
    async with kinds_of(tmp_path) as (api, table, kinds):
        api.create(SETS, stateful_set("db"))
        kinds.need("policy", {STATEFUL_SETS: ["A"], PERSISTENT_VOLUMES: ["B"]})
        kinds.need("session", {STATEFUL_SETS: ["A", "Old"]})
        await kinds.synced([STATEFUL_SETS, PERSISTENT_VOLUMES])
        assert table.counts == {"statefulsets.apps": 1, "persistentvolumes": 0}
        assert set(kinds.ages()) == set(table.counts)
        await until(lambda: api.faults.watches() == 2)
        kinds.need("policy", {})
        assert table.counts == {"statefulsets.apps": 1}
        await until(lambda: api.faults.watches() == 1)
        kinds.need("session", {})
        assert table.counts == kinds.ages() == {}
        await until(lambda: api.faults.watches() == 0)
        api.create(SETS, stateful_set("more"))
        kinds.need("session", {STATEFUL_SETS: ["A"]})
        await kinds.synced([STATEFUL_SETS])
        assert table.counts == {"statefulsets.apps": 2}


async def test_a_kind_that_fell_silent_is_a_problem(tmp_path: Path) -> None:
    async with kinds_of(tmp_path) as (_, _table, kinds):
        kinds.need("policy", {STATEFUL_SETS: ["B", "A"]})
        assert list(kinds.problems(60)) == ["statefulsets.apps, read by A, B: not read yet"]
        await kinds.synced([STATEFUL_SETS])
        assert list(kinds.problems(60)) == []
        (problem,) = kinds.problems(-1)
        assert problem == "statefulsets.apps, read by A, B: the API server is silent for 0 s"
