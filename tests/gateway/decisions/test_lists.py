"""Decisions are found by what people know of them, newest first, a page at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin
from tests.gateway.scheduling.noting import decided
from tests.gateway.sharing import sharing
from tools.inprocess.gateway import Gateway, Options, bind, pod, policy_of
from tools.waiting import until

NAMES = ("n0", "n1", "n2", "n3")


class Picky(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("no place") if "n3" in (node.name, pod.name) else None


class Numbered(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return 10.0 * float(node.name[1:])


@asynccontextmanager
async def deciding(tmp_path: Path, **settings: Any) -> AsyncIterator[Gateway]:
    policy = policy_of("{multiPoint: {enabled: [{name: Picky}, {name: Numbered}]}}")
    options: Options = {"policy": policy, "nodes": NAMES, **settings}
    async with sharing(tmp_path, Picky, Numbered, **options) as running:
        yield running


async def decide(running: Gateway, name: str, *names: str) -> None:
    left = (await running.filter(pod(name), *(names or NAMES)))["NodeNames"]
    if len(left) > 1:
        await running.prioritize(pod(name), *left)


async def listed(running: Gateway, query: str = "") -> list[str]:
    status, answer = await running.get(f"/decisions?{query}")
    assert status == 200, answer
    return [item["pod"] for item in answer["items"]]


async def test_lists_are_filtered(tmp_path: Path) -> None:
    async with deciding(tmp_path, http_timeout=2.0) as running:
        await decide(running, "a")
        await decide(running, "b", "n0", "n1")
        await decide(running, "n3")
        assert await bind(running, pod("b"), "n1") == "binder service is not available"
        assert await listed(running) == ["n3", "b", "a"]
        assert await listed(running, "pod=a&namespace=default") == ["a"]
        assert await listed(running, "pod=b") == ["b"]
        assert await listed(running, "namespace=other") == []
        assert await listed(running, "outcome=unschedulable") == ["n3"]
        assert await listed(running, "outcome=bind+failed") == ["b"]
        assert await listed(running, "node=n1") == ["b"]
        assert await listed(running, "plugin=Picky") == ["n3", "a"]
        assert await listed(running, "plugin=Numbered") == ["b", "a"]
        assert await listed(running, "profile=moorage&plugin=Numbered&pod=a") == ["a"]
        assert await listed(running, "profile=other") == []
        assert await listed(running, "since=15m&until=") == ["n3", "b", "a"]
        assert await listed(running, "until=15m") == []
        assert await listed(running, "since=2026-01-01T00:00:00%2B01:00") == ["n3", "b", "a"]


async def test_a_list_goes_on_where_the_page_before_ended(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        for name in "abcde":
            await decide(running, name, "n0", "n1")
        pages: list[list[str]] = []
        after = ""
        while not pages or after:
            _, answer = await running.get(f"/decisions?limit=2&continue={after}")
            pages.append([item["pod"] for item in answer["items"]])
            after = answer["continue"]
            await decide(running, "later", "n0", "n1")  # is not in the pages that follow
    assert pages == [["e", "d"], ["c", "b"], ["a"]]


BAD = [
    ("nod=n1", "there is no parameter nod; there are continue, id, limit, namespace,"),
    ("pod=a&pod=b", "pod is given twice"),
    ("limit=0", "limit: expected `int` >= 1, not 0"),
    ("limit=many", "limit: expected `int`, not many"),
    ("outcome=lost", "outcome is one of bound, binding, deciding, unschedulable, failed,"),
    ("outcome=a%20-%20at%20%60$.b", "outcome is one of bound, binding, deciding,"),
    (
        "since=yesterday",
        "since: expected a time such as 2026-11-23T01:30:00Z, or how long ago, such",
    ),
    ("until=2026-11-23T01:30:00", "until: expected a time such as"),
    ("since=5m&until=10m", "since is after until, so no decision can match"),
    ("continue=ffffffffff03", "continue is not from this gateway, or it has restarted since"),
    ("continue=%00", "continue is not from this gateway"),
]


async def test_bad_parameters_are_refused(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        for query, error in BAD:
            status, answer = await running.get(f"/decisions?{query}")
            assert (status, answer["error"].startswith(error)) == (400, True), answer


async def test_the_nodes_of_a_decision_are_a_table(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        await decide(running, "a")
        attempt = await decided(running, "a")
        path = f"/decisions/default/a/{attempt['id']}/nodes"
        _, table = await running.get(path)
        assert table["total"] == 4
        assert table["plugins"] == {
            "filter": ["Picky"],
            "score": [{"plugin": "Numbered", "weight": 1}],
        }
        assert [(each["node"], each["rank"]) for each in table["items"]] == [
            ("n2", 1),
            ("n1", 2),
            ("n0", 3),
            ("n3", None),
        ]
        assert table["items"][0]["scores"] == {"Numbered": {"raw": 20.0, "normalized": 20.0}}
        assert table["items"][3] == {
            "node": "n3",
            "verdict": "rejected",
            "plugin": "Picky",
            "reason": "no place",
            "rank": None,
            "total": None,
            "scores": {},
        }
        _, part = await running.get(f"{path}?limit=2&offset=1")
        assert (part["total"], [each["node"] for each in part["items"]]) == (4, ["n1", "n0"])
        status, refused = await running.get(f"{path}?sort=size")
        assert (status, refused["error"]) == (
            400,
            "there is no parameter sort; there are limit, offset",
        )
        status, missing = await running.get("/decisions/default/a/other/nodes")
        assert (status, missing["error"]) == (
            404,
            "there is no decision other about pod default/a",
        )


async def test_nodes_that_are_not_kept_are_gone(tmp_path: Path) -> None:
    async with deciding(tmp_path, decision_arrays=1) as running:
        await decide(running, "a")
        await decide(running, "b")
        attempt = await decided(running, "a")
        status, gone = await running.get(f"/decisions/default/a/{attempt['id']}/nodes")
    assert status == 410
    assert gone["error"].endswith("are not kept, or it has none")


async def test_nodes_keep_their_names_though_their_rows_are_given_to_others(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        await decide(running, "a")
        running.api.delete("/api/v1/nodes/n1")
        await until(lambda: running.sample("moorage_cache_size", type="nodes") == 3)
        await running.node("n9")
        await until(lambda: running.sample("moorage_cache_size", type="nodes") == 4)
        await decide(running, "b", "n0", "n9")
        tables = {}
        for name in "ab":
            _, answer = await running.get(f"/decisions/default/{name}")
            path = f"/decisions/default/{name}/{answer['attempts'][0]['id']}/nodes"
            tables[name] = [each["node"] for each in (await running.get(path))[1]["items"]]
        _, answer = await running.get("/decisions/default/a?node=n1")
    assert tables == {"a": ["n2", "n1", "n0", "n3"], "b": ["n9", "n0"]}
    (seen,) = answer["views"]
    assert (seen["verdict"], seen["rank"]) == ("feasible", 2)
