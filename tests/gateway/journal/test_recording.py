"""What a gateway records can be decided again, whatever the disk does, and holds no secret."""

import asyncio
import json
import os
import resource
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.config.policies import load_registries
from cli.whatif.engines import filtered, scored
from gateway.journal.records import Redaction
from gateway.journal.segments import (
    Segment,
    find_segments,
    read_segment,
    remove_oldest,
    segments_in,
)
from gateway.whatif.replay import Engines, Replay
from gateway.whatif.replay_report import Report
from moorage.models import ObjectKind, ObjectName
from moorage.v1 import journal_pb2 as pb
from tools.inprocess.gateway import Gateway, Options, plane, pod
from tools.waiting import until


@asynccontextmanager
async def recording(
    directory: Path, journal: Path, *, works: bool = True, **more: Any
) -> AsyncIterator[Gateway]:
    """Run a gateway with a journal, and services with the built-in plugins.

    Unless it cannot work, the journal has begun.
    """
    options: Options = {"journal": journal, "journal_retry_interval": 0.2, **more}
    async with plane(directory, **options) as running:
        if works:
            await until(lambda: running.sample("moorage_journal_records_total", type="state") >= 2)
        yield running


async def schedule(running: Gateway, name: str, nodes: Sequence[str], cpu: str = "100m") -> str:
    """Filter and prioritize a pod, and put it on the best node, as kube-scheduler would."""
    requests = {"resources": {"requests": {"cpu": cpu}}}
    obj = pod(name, containers=[{"name": "c", "image": "i", "env": SECRET_ENV, **requests}])
    obj["metadata"]["annotations"] = {"example.com/token": "s3cret", "moorage.io/kept": "yes"}
    answer = await running.filter(obj, *nodes)
    feasible = answer["NodeNames"] or []
    best = feasible[0] if feasible else ""
    if len(feasible) > 1:
        scores = await running.prioritize(obj, *feasible)
        best = max(scores, key=lambda each: each["Score"])["Host"]
    if best:
        running.api.pod(name, **{**obj["spec"], "nodeName": best})
    return best


SECRET_ENV = [{"name": "PASSWORD", "value": "s3cret"}]


def replay(journal: Path) -> Report:
    """Replay a journal with the recorded policy."""
    engines = Engines(registries=load_registries(()), filter=filtered, score=scored)
    return asyncio.run(Replay(journal, engines, examples=3).run(None, lambda _: None))


def records(journal: Path) -> list[pb.JournalRecord]:
    """Return all records of a journal."""
    return [record for path in find_segments(journal) for _, record in read_segment(path)]


NODES = ("n1", "n2", "n3")


def written(running: Gateway, kind: str) -> float:
    return running.sample("moorage_journal_records_total", type=kind)


async def test_a_replay_gives_the_recorded_answers_while_the_cluster_changes(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    async with recording(tmp_path, journal) as running:
        await running.node(*NODES)
        for number in range(30):
            await schedule(running, f"p{number}", NODES, cpu="350m")
            if number % 7 == 3:
                path = f"/api/v1/nodes/n{number % 3 + 1}"
                node = running.api.read(path)
                taints = [{"key": "k", "effect": "NoSchedule"}] if number % 2 else []
                running.api.replace(path, {**node, "spec": {"taints": taints}})
        await schedule(running, "too-large", NODES, cpu="64")
    report = await asyncio.to_thread(replay, journal)
    assert (report.cycles, report.unchanged) == (31, 31)
    assert (report.checked, report.not_reproducible, report.notes) == (True, 0, [])


async def test_a_segment_that_is_full_is_followed_by_one_with_a_state_of_its_own(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    async with recording(tmp_path, journal, journal_segment_age=0.01, journal_segments=3) as it:
        await it.node(*NODES)
        for number in range(20):
            before = written(it, "header")
            await schedule(it, f"p{number}", NODES)
            await until(lambda before=before: written(it, "header") > before)  # type: ignore[misc]
    segments = sorted(journal.iterdir())
    assert len(segments) == 3
    for segment in segments:  # each without those before it
        report = await asyncio.to_thread(replay, segment)
        assert report.not_reproducible == 0
        assert report.not_replayed == {}


async def test_every_kind_of_cycle_is_recorded(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with recording(tmp_path, journal, policy=CLAIMS) as running:
        await running.node(*NODES)
        # Claims: both pods of a run get the node that the first one has claimed.
        for name in ("a", "b"):
            obj = running.api.pod(name, labels={RUN: "7"}, schedulerName="moorage")
            status, answer = await running.call("filter", {"Pod": obj, "NodeNames": NODES})
            assert (status, len(answer["NodeNames"])) == (200, 1)
        # A caller without a node cache, whose node is other than the state's.
        tainted = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
        items = [{**running.api.read(f"/api/v1/nodes/{name}"), **tainted} for name in NODES]
        body = {"Pod": pod("given"), "Nodes": {"items": items}, "NodeNames": None}
        assert not (await running.call("filter", body))[1]["Nodes"]["items"]
        # Score alone, and preemption.
        assert await running.prioritize(pod("alone"), *NODES)
        running.api.pod("victim", nodeName="n1", containers=[LARGE])
        await until(lambda: running.sample("moorage_cache_size", type="pods") >= 1)
        victim = running.api.read_pod("victim")["metadata"]["uid"]
        victims = {"n1": {"Pods": [{"UID": victim}], "NumPDBViolations": 0}}
        large = pod("large", containers=[LARGE])
        status, answer = await running.call(
            "preempt", {"Pod": large, "NodeNameToMetaVictims": victims}
        )
        assert list(answer["NodeNameToMetaVictims"]) == ["n1"]
    cycles = [each.cycle for each in records(journal) if each.HasField("cycle")]
    assert [each.kind for each in cycles] == [1, 1, 1, 2, 3]
    assert cycles[0].claim == cycles[1].claim != ""
    report = await asyncio.to_thread(replay, journal)
    assert (report.cycles, report.unchanged, report.not_reproducible) == (5, 5, 0)


RUN = "tekton.dev/pipelineRun"
LARGE = {
    "name": "c",
    "image": "i",
    "resources": {"requests": {"cpu": "4"}},
}
CLAIMS = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}, {name: OneNodePerPipelineRun}]}}
"""


async def test_secrets_are_left_out(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with recording(tmp_path, journal) as running:
        annotations = {"example.com/key": "s3cret", "moorage.io/zone": "a"}
        metadata = {"name": "n1", "annotations": annotations}
        manifest = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        running.api.create("/api/v1/nodes", manifest)
        await until(lambda: running.sample("moorage_cache_size", type="nodes"))
        await schedule(running, "p", ["n1"])
    text = str(records(journal))
    assert "moorage.io/zone" in text
    assert "moorage.io/kept" in text
    assert "s3cret" not in text


async def test_a_folder_that_cannot_be_written_stops_nothing_and_is_reported(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    journal.write_text("a file where the folder should be")
    async with recording(tmp_path, journal, works=False) as running:
        await running.node(*NODES)
        assert await schedule(running, "p1", NODES)
        await until(lambda: running.sample("moorage_journal_dropped_total", cause="write"))
        status, answer = await running.get("/readyz?verbose")
        assert status == 200
        assert f"{journal} cannot be written: File exists" in str(answer)
        journal.unlink()
        await until(lambda: written(running, "state") >= 2)
        await schedule(running, "p2", NODES)
    report = await asyncio.to_thread(replay, journal)
    assert (report.cycles, report.not_reproducible) == (1, 0)
    assert report.dropped["write"] >= 1


async def test_a_full_disk_ends_a_segment_and_the_next_one_is_whole(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with recording(tmp_path, journal) as running:
        await running.node(*NODES)
        with largest_file(10_000):
            for number in range(1000):
                await schedule(running, f"a{number}", NODES)
                if running.sample("moorage_journal_dropped_total", cause="write"):
                    break
            before = written(running, "header")
            assert "File too large" in str(await running.get("/readyz?verbose"))
        await until(lambda: written(running, "header") > before)
        await has_no_note(running)
        await schedule(running, "b", NODES)
    report = await asyncio.to_thread(replay, journal)
    assert report.cycles > 1
    assert (report.not_reproducible, report.not_replayed, report.notes) == (0, {}, [])
    assert records(journal)[-1].HasField("end")


async def test_a_slow_disk_costs_records_and_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, is_fast = tmp_path / "journal", threading.Event()
    is_fast.set()
    real = os.fsync

    def slow(file: int) -> None:
        is_fast.wait()
        real(file)

    monkeypatch.setattr(os, "fsync", slow)
    async with recording(tmp_path, journal, journal_memory=1 << 20, decision_top=0) as running:
        await running.node(*NODES)
        await schedule(running, "a", NODES)
        is_fast.clear()
        for number in range(1000):
            await schedule(running, f"p{number}", NODES)
            if running.sample("moorage_journal_dropped_total", cause="queue"):
                break
        assert running.sample("moorage_journal_dropped_total", cause="queue") == 1
        before = written(running, "header")
        is_fast.set()
        await until(lambda: written(running, "header") > before)
        await has_no_note(running)
        await schedule(running, "z", NODES)
    report = await asyncio.to_thread(replay, journal)
    assert report.cycles > 1
    assert (report.not_reproducible, report.notes) == (0, [])
    assert report.dropped["queue"] == 1


async def has_no_note(running: Gateway) -> None:
    """Wait until nothing is noted about the journal."""
    async with asyncio.timeout(10):
        while "journal" in str(await running.get("/readyz?verbose")):  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.02)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as if the disk was full then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


SETS = ObjectKind("apps/v1", "statefulsets")
SECRETS = ObjectKind("v1", "secrets")


def objects_written(kind: ObjectKind, obj: Any, *kept: str) -> Any:
    redaction = Redaction(kept)
    name = ObjectName(kind, "default", "name")
    return json.loads(redaction.object(name, json.dumps(obj).encode()))


def test_a_template_keeps_the_names_of_variables_and_not_their_values() -> None:
    env = [{"name": "PASSWORD", "value": "s3cret"}, {"name": "HOST", "valueFrom": {"x": "y"}}]
    containers = [{"name": "main", "image": "app", "env": env}]
    template = {"metadata": {"annotations": {"a/token": "t", "a/kept": "k"}}}
    obj = {"spec": {"template": {**template, "spec": {"containers": containers}}}}
    found = objects_written(SETS, obj, "a/k*")["spec"]["template"]
    assert found["metadata"]["annotations"] == {"a/kept": "k"}
    assert found["spec"]["containers"][0]["env"] == [
        {"name": "PASSWORD", "value": "redacted"},
        {"name": "HOST", "valueFrom": {"x": "y"}},
    ]
    assert found["spec"]["containers"][0]["image"] == "app"


def test_a_secret_keeps_its_keys() -> None:
    obj = {"metadata": {"name": "name"}, "data": {"key": "czNjcmV0"}, "stringData": {"more": "x"}}
    found = objects_written(SECRETS, obj)
    assert found == {"metadata": {"name": "name"}, "data": {"key": ""}, "stringData": {"more": ""}}


def test_segments_of_the_future_do_not_make_a_gateway_delete_its_own(tmp_path: Path) -> None:
    future = [tmp_path / f"2999010{day}T000000.000000Z-1.journal" for day in range(1, 5)]
    for path in future:
        path.write_bytes(b"")
    own = [Segment(tmp_path, number) for number in (1, 2, 3)]
    remove_oldest(tmp_path, 2)
    assert segments_in(tmp_path) == [segment.path for segment in own[1:]]
    for segment in own:
        segment.discard()
