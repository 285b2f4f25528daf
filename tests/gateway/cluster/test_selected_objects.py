"""Of a kind that plugins read, only the namespace and the labels that they name are followed."""

from pathlib import Path
from typing import Any

import pytest

from gateway.cluster.kinds import advice
from moorage import FilterPlugin, Nodes, ObjectKind, Pod, Rejection, Verdicts
from moorage.models import ObjectName
from tests.gateway.cluster.test_objects import kinds_of
from tools.inprocess.api import Api
from tools.inprocess.gateway import Gateway, plane, pod, policy_of, ready
from tools.waiting import until

MAPS = ObjectKind("v1", "configmaps")
IN_PRICES = ObjectKind("v1", "configmaps", namespace="prices")
SPOT = ObjectKind("v1", "configmaps", label_selector="tier in (spot, free)")
ONE = ObjectKind("v1", "configmaps", namespace="prices", field_selector="metadata.name=cheap")
POLICY = policy_of("{filter: {enabled: [{name: Selecting}]}}")


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
    async with plane(tmp_path, Selecting, policy=POLICY, waits=False) as found:
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
        (MAPS, "/api/v1/configmaps", "configmaps"),
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
