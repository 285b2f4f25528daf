"""What fails in the background of plugins is noted where users look: at the gateway."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin
from moorage_host.rpc.session import ReplicaServicer
from tools.inprocess.gateway import Gateway, Options, plane, pod, policy_of, ready
from tools.waiting import until

POLICY = policy_of("{multiPoint: {enabled: [{name: Reads}, {name: Ranks}]}}")


class Reads(FilterPlugin):
    works = False

    async def start(self) -> None:
        self.poll(self._read, 0.05)

    def _read(self) -> None:
        if not Reads.works:
            raise OSError("no server")

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.note("asked")
        return None


class Ranks(ScorePlugin):
    async def start(self) -> None:
        self.background(self._wait)

    async def _wait(self) -> None:
        raise ValueError("no rank")

    def score_node(self, pod: Pod, node: Node) -> float:
        return 1.0


async def test_the_gateway_notes_failures_in_the_background_while_they_last(tmp_path: Path) -> None:
    Reads.works = False
    async with plane(tmp_path, Reads, Ranks, policy=POLICY, nodes=("n1",)) as found:
        note = await noted(found, "Reads", "Ranks")
        assert re.search(
            r"plugin Reads in filter at \S+: _read failed \S+.* OSError: no serv", note
        )
        assert re.search(
            r"plugin Ranks in scorer at \S+: _wait failed \S+.* ValueError: no r", note
        )
        (report,) = (await decision(found, "a"))["filter"]["plugins"]
        assert re.match(r"asked; _read failed .* OSError: no server \(tests/", report["note"])
        Reads.works = True
        await noted(found, "Ranks")
        (report,) = (await decision(found, "b"))["filter"]["plugins"]
        assert report["note"] == "asked"


async def test_reports_begin_again_when_they_end_before_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    follow = ReplicaServicer.FollowProblems

    async def breaking(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
        calls.append(request)
        if len(calls) == 1:
            await context.abort(grpc.StatusCode.INTERNAL, "a proxy had enough of this stream")
        async for each in follow(self, request, context):
            yield each

    monkeypatch.setattr(ReplicaServicer, "FollowProblems", breaking)
    Reads.works = False
    async with plane(tmp_path, Reads, Ranks, policy=POLICY, nodes=("n1",)) as found:
        await noted(found, "Reads", "Ranks")
        opened = found.sample("moorage_sessions_opened_total", service="filter")
        assert (opened, len(calls)) == (1, 3)


class Broken(ScorePlugin):
    works = False

    async def start(self) -> None:
        if not Broken.works:
            raise OSError("no license")

    def score_node(self, pod: Pod, node: Node) -> float:
        return 1.0


async def test_a_score_plugin_that_does_not_start_is_told_everywhere(
    tmp_path: Path,
) -> None:
    policy = POLICY.replace("Ranks", "Broken")
    Reads.works, Broken.works = True, False
    reason = r"plugin Broken of profile moorage does not start: OSError: no license \(\S+\.py:\d+\)"
    options: Options = {"policy": policy, "nodes": ("n1", "n2"), "waits": False}
    async with plane(tmp_path, Reads, Broken, **options) as found:
        reasons: dict[str, str] = {}

        async def is_refused() -> bool:
            status, answer = await found.get("/readyz")
            reasons.clear()
            reasons.update((each["name"], each["reason"]) for each in answer.get("checks", ()))
            refused = "refuses" in reasons.get("scorer", "")
            return status == 503 and refused and "filter" not in reasons

        await until(is_refused)
        assert re.search(rf"scorer at \S+ refuses the policy: {reason}$", reasons["scorer"])
        await found.filter(pod("a"), "n1", "n2")
        why = ""

        async def is_explained() -> bool:
            nonlocal why
            _, answer = await found.get("/decisions/default/a")
            why = answer["attempts"][0]["reason"]
            return "without scores" in why

        await until(is_explained)
        assert re.search(rf"without scores: scorer service is not available: {reason}$", why)
        Broken.works = True
        await ready(found)


async def noted(found: Gateway, *names: str) -> str:
    """Wait until the gateway, which is ready, notes failures of just these plugins."""
    note = ""

    async def is_noted() -> bool:
        nonlocal note
        status, answer = await found.get("/readyz?verbose")
        assert status == 200
        note = "".join(each["note"] for each in answer.get("notes", ()))
        return set(re.findall(r"plugin (\w+)", note)) == set(names)

    await until(is_noted)
    return note


async def decision(found: Gateway, name: str) -> Any:
    await found.filter(pod(name), "n1")
    _, answer = await found.get(f"/decisions/default/{name}")
    return answer["attempts"][0]
