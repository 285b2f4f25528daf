"""What the page asks the gateway, without a browser."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from yarl import URL

from gateway.cycle.decision import BindPluginRecord
from gateway.inspector.policy import lines_of
from gateway.inspector.timeline import Timeline, quantile
from gateway.replicas.metrics import ReplicaMetrics
from moorage_host.policy import Catalogue, PluginInfo, parse, resolve
from tools.inprocess.gateway import gateway
from tools.waiting import until

POLICY = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: a
  plugins:
    filter:
      enabled:
      - name: Fits
    score:
      enabled:
      - name: Likes
        weight: 3
  pluginConfig:
  - name: Likes
    args:
      zones: [x, y]
    timeBudget: 200ms
- schedulerName: b
"""


HALF = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}


def origins(policy: str) -> dict[str, list[str]]:
    """Return the origins of each text in the effective policy."""
    catalogue = Catalogue(
        [
            PluginInfo(name="Fits", points=frozenset({"Filter"}), default_args={"strict": True}),
            PluginInfo(name="Likes", points=frozenset({"Score"}), default_args={"depth": 2}),
        ]
    )
    document = parse(policy, "dir/policy.yaml")
    found: dict[str, list[str]] = {}
    for line in lines_of(document, resolve(document, catalogue)):
        found.setdefault(line.text.strip(), []).append(line.origin)
    return found


def test_each_line_of_the_effective_policy_has_its_origin() -> None:
    found = origins(POLICY)
    assert found["- schedulerName: a"] == ["policy.yaml:4"]
    assert found["- schedulerName: b"] == ["policy.yaml:18"]
    assert found["scoreScale: 100"] == ["default"]
    assert found["- name: Fits"] == ["policy.yaml:8", "default of Fits"]
    assert found["strict: true"] == ["default of Fits"]
    assert found["weight: 3"] == ["policy.yaml:12"]
    assert found["depth: 2"] == ["default of Likes"]
    assert found["- x"] == ["policy.yaml:16"]
    assert found["timeBudget: 200ms"] == ["policy.yaml:17"]


def test_quantiles_are_those_of_prometheus() -> None:
    counts = {0.1: 10.0, 0.2: 90.0, float("inf"): 100.0}
    assert quantile(counts, 0.5) == pytest.approx(0.15)
    assert quantile(counts, 0.99) == 0.2
    assert quantile({float("inf"): 0.0}, 0.5) is None


async def test_files_come_with_a_strict_policy_and_are_not_sent_twice(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running, running.session.get(running.admin) as begin:
        assert begin.url.path == "/inspector/"
        assert "default-src 'self'" in begin.headers["Content-Security-Policy"]
        assert "unsafe" not in begin.headers["Content-Security-Policy"]
        tag = {"If-None-Match": begin.headers["ETag"]}
        async with running.session.get(begin.url, headers=tag) as again:
            assert again.status == 304
        for outside in (
            "/inspector/%2e%2e/assets.py",
            "/inspector/../assets.py",
            "/inspector/none",
        ):
            assert (await running.get(outside))[0] == 404


async def test_a_query_that_is_wrong_is_answered_with_what_would_be_right(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running:
        for path, part in (
            ("/nodes?sort=cpu", "there are limit, offset"),
            ("/nodes?limit=-1", "limit: expected `int` >= 1, not -1"),
            ("/nodes?limit=5001", "limit: expected `int` <= 5000, not 5001"),
            ("/plugins?since=soon", "duration"),
        ):
            status, answer = await running.get(path)
            assert (status, part in answer["error"]) == (400, True), path
        assert (await running.get("/nodes/none"))[0] == 404
        assert (await running.get("/policy"))[0] == 503  # no service has announced its plugins


async def test_the_map_has_all_nodes_by_any_label_that_groups_them(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running:
        await running.node("n1", "n2", "n3", "n4")
        for name in ("n1", "n2", "n3", "n4"):
            labels = {"rack": "r1" if name == "n1" else "r2", "kubernetes.io/hostname": name}
            running.api.label(f"/api/v1/nodes/{name}", **labels)
        running.api.pod("half", nodeName="n1", containers=[HALF])

        async def seen() -> bool:
            _, answer = await running.get("/map?by=rack")
            groups = {name: value for name, value, *_ in answer["nodes"]}
            return groups == {"n1": "r1", "n2": "r2", "n3": "r2", "n4": "r2"} and any(
                share for _, _, share, *_ in answer["nodes"]
            )

        await until(seen)
        _, answer = await running.get("/map?by=rack")
        assert answer["nodes"][0] == ["n1", "r1", 0.5, 0.0, 1, 110, 0]
        assert answer["labels"] == ["rack"]  # each node has a hostname of its own


async def test_a_page_of_another_site_reads_nothing_and_no_page_changes_anything(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path) as running:
        site, body = URL(running.admin), {"Content-Type": "text/plain"}
        own = {"Origin": running.admin, "Sec-Fetch-Site": "same-origin"}
        rebound = {"Host": f"evil.example:{site.port}", "Sec-Fetch-Site": "same-origin"}
        cases = [
            ("GET", {"Origin": "https://evil.example"}, 403),
            ("GET", {"Sec-Fetch-Site": "cross-site"}, 403),
            ("HEAD", {"Sec-Fetch-Site": "same-site"}, 403),
            ("OPTIONS", {"Origin": "https://evil.example"}, 403),
            ("GET", rebound, 421),
            ("POST", {**rebound, "Origin": f"http://evil.example:{site.port}"}, 421),
            ("POST", {"Origin": "null", **body}, 403),
            ("POST", {**own, **body}, 403),
        ]
        paths = (await running.get("/no-such-path"))[1]["paths"]
        assert {"/simulate", "/decisions/stream", "/metrics", "/readyz"} <= set(paths)
        for path in paths:
            for method, headers, status in cases:
                url = site.with_path(path)
                async with running.session.request(method, url, headers=headers) as answer:
                    assert answer.status == status, (method, path, headers)
                    assert "Access-Control-Allow-Origin" not in answer.headers


def test_binds_are_a_phase_beside_filter_and_score() -> None:
    registry = CollectorRegistry()
    metrics = ReplicaMetrics(registry)
    timeline = Timeline(registry, interval=1, clock=lambda: 10.0)
    for result in ("ok", "failed"):
        ran = BindPluginRecord(plugin="GangPermit", point="permit", result=result, seconds=0.25)
        metrics.bound([ran])
    timeline.note()
    series = timeline.since(0)["series"]
    (bound,) = (each for each in series if each["plugin"])
    assert (bound["plugin"], bound["phase"]) == ("GangPermit", "bind")
    assert (bound["cycles"], bound["mean"], bound["failures"]) == ([2], [0.25], [1])
