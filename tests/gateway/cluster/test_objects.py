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
from gateway.cluster.kinds import AdditionalKinds, advice
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
    reads = (STATEFUL_SETS,)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        found = nodes.objects(STATEFUL_SETS).get(pod.name, pod.namespace)
        none = found is None or found["spec"]["replicas"] < 2
        return nodes.verdicts().reject([none] * len(nodes), Rejection("not replicated"))


class OptionallyReplicated(FilterPlugin):
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


SELECTING = policy_of("{filter: {enabled: [{name: Selecting}]}}")
IN_PRICES = ObjectKind("v1", "configmaps", namespace="prices")
SPOT = ObjectKind("v1", "configmaps", label_selector="tier in (spot, free)")
ONE = ObjectKind("v1", "configmaps", namespace="prices", field_selector="metadata.name=cheap")


class Selecting(FilterPlugin):
    """Rejects all nodes; the reason is what the plugin sees of each selection."""

    reads = (IN_PRICES, SPOT)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        return nodes.verdicts().reject([True] * len(nodes), Rejection(self.seen(nodes)))

    def seen(self, nodes: Nodes) -> str:
        found = (nodes.objects(kind) for kind in self.reads)
        return "; ".join(
            ",".join(sorted(obj["metadata"]["name"] for obj in objects)) for objects in found
        )


def path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def config_map(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def add_namespaces(api: Api) -> None:
    for name in ("prices", "other"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        api.create("/api/v1/namespaces", namespace)


async def sees(found: Gateway, expected: str) -> None:
    async def is_reason() -> bool:
        answer = await found.filter(pod("db"), "n1")
        rejected = answer["FailedAndUnresolvableNodes"] or {}
        return bool(rejected.get("n1", answer["Error"]) == expected)

    await until(is_reason)


async def test_a_plugin_sees_what_it_selects_as_it_changes(tmp_path: Path) -> None:
    async with plane(tmp_path, Selecting, policy=SELECTING, waits=False) as found:
        api = found.api
        add_namespaces(api)
        api.create(path("prices"), config_map("cheap", "prices", tier="spot"))
        api.create(path("prices"), config_map("dear", "prices"))
        api.create(path("other"), config_map("foreign", "other"))
        await found.node("n1")
        await ready(found)
        await sees(found, "cheap,dear; cheap")
        assert found.sample("moorage_cache_size", type=str(IN_PRICES)) == 2
        assert found.sample("moorage_cache_size", type=str(SPOT)) == 1
        api.label(path("other", "foreign"), tier="free")
        await sees(found, "cheap,dear; cheap,foreign")
        api.label(path("prices", "cheap"), tier="reserved")
        await sees(found, "cheap,dear; foreign")
        api.delete(path("prices", "dear"))
        await sees(found, "cheap; foreign")


async def test_each_selection_is_a_watch_and_holds_only_its_objects(tmp_path: Path) -> None:
    async with kinds_of(tmp_path) as (api, table, kinds):
        add_namespaces(api)
        api.create(path("prices"), config_map("cheap", "prices", tier="spot"))
        api.create(path("prices"), config_map("dear", "prices"))
        api.create(path("other"), config_map("cheap", "other"))
        selections = (IN_PRICES, SPOT, ONE)
        kinds.need("policy", {kind: ["A"] for kind in selections})
        kinds.need("session", {SPOT: ["B"]})
        await kinds.synced(selections)
        assert set(table) == {
            ObjectName(IN_PRICES, "prices", "cheap"),
            ObjectName(IN_PRICES, "prices", "dear"),
            ObjectName(SPOT, "prices", "cheap"),
            ObjectName(ONE, "prices", "cheap"),
        }
        await until(lambda: api.faults.watches() == len(selections))
        kinds.need("policy", {})
        assert table.counts == {"configmaps[-l tier in (spot, free)]": 1}
        await until(lambda: api.faults.watches() == 1)


@pytest.mark.parametrize(
    ("kind", "url", "shown"),
    [
        (ObjectKind("v1", "configmaps"), "/api/v1/configmaps", "configmaps"),
        (ObjectKind("a.com/v1beta1", "racks"), "/apis/a.com/v1beta1/racks", "racks.a.com"),
        (IN_PRICES, path("prices"), "configmaps[-n prices]"),
        (SPOT, "/api/v1/configmaps", "configmaps[-l tier in (spot, free)]"),
        (
            ONE,
            path("prices"),
            "configmaps[-n prices --field-selector metadata.name=cheap]",
        ),
    ],
)
def test_a_selection_is_shown_as_kubectl_writes_it(kind: ObjectKind, url: str, shown: str) -> None:
    assert (kind.path, str(kind)) == (url, shown)


def test_a_role_is_enough_for_one_namespace() -> None:
    assert "in the namespace prices, where a Role will do" in advice(IN_PRICES)
    assert "namespace" not in advice(SPOT)
