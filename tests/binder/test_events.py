import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from moorage import DecisionSummary, ScoredNode
from moorage_host.kube import KubeClient
from moorage_host.kube.events import EventWriter
from services.binder.binding.outcomes import BindError, BindReason, BindResult
from services.binder.events import BindEvents
from tools.inprocess.api import Api
from tools.inprocess.binder import Observed, binding_of, events_of
from tools.waiting import until

Mode = Literal["failures", "all", "none"]

GATED = BindError(BindReason.GATED, "pod default/web has scheduling gates: g")


class Recording:
    """What reports binds, what writes that, and what it counted."""

    def __init__(self, client: KubeClient, mode: Mode, queue: int = 100) -> None:
        self.counted = Observed()
        count = self.counted.event
        self.writer = EventWriter(client, "binder-0", waiting=queue, count=count)
        self.events = BindEvents(self.writer, mode)


@asynccontextmanager
async def recording(client: KubeClient, mode: Mode = "failures") -> AsyncIterator[Recording]:
    made = Recording(client, mode)
    writer = asyncio.create_task(made.writer.run())
    try:
        yield made
    finally:
        writer.cancel()
        await asyncio.wait([writer])


async def test_a_failed_bind_is_told_as_kube_scheduler_would(client: KubeClient, api: Api) -> None:
    pod = api.pod()
    async with recording(client) as made:
        made.events.record(binding_of(pod, profile="batch-scheduler"), GATED)
        await made.writer.flush(5)
    [event] = await events_of(client)
    assert made.counted.events == ["written"]
    fields = {key: event.get(key) for key in ("type", "reason", "action")}
    assert fields == {"type": "Warning", "reason": "FailedBinding", "action": "Binding"}
    assert (event["reportingController"], event["reportingInstance"]) == (
        "batch-scheduler",
        "binder-0",
    )
    uid = pod["metadata"]["uid"]
    assert event["regarding"] | {"kind": "Pod", "name": "web", "uid": uid} == event["regarding"]
    assert event["note"] == f"Binding default/web to node-a failed: {GATED}"


async def test_what_was_lacking_is_told_of_a_pod_that_is_bound(
    client: KubeClient, api: Api
) -> None:
    lacking = "scorer service is not available: plugin A of profile p does not start: OSError"
    pod = api.pod()
    modes: list[tuple[Mode, int]] = [("failures", 1), ("none", 1), ("all", 2)]
    for mode, expected in modes:
        async with recording(client, mode) as made:
            made.events.record(binding_of(pod), BindResult.BOUND, lacking)
            await made.writer.flush(5)
        events = await events_of(client)
        assert len(events) == expected
        assert events[-1]["reason"] == "PlacedWithoutScores"
        assert events[-1]["note"] == f"Assigned default/web to node-a: {lacking}"


async def test_success_is_told_if_all_events_are_wanted(client: KubeClient, api: Api) -> None:
    decision = DecisionSummary(winner=ScoredNode(node="node-a"), reason="Steered rejected 3: no")
    binding = binding_of(api.pod(), decision=decision)
    modes: tuple[Mode, ...] = ("none", "failures", "all")
    for mode in modes:
        assert await events_of(client) == []
        async with recording(client, mode) as made:
            made.events.record(binding, BindResult.BOUND)
            made.events.record(binding, BindResult.ALREADY_BOUND)
            await made.writer.flush(5)
    [event] = await events_of(client)
    assert (event["type"], event["reason"]) == ("Normal", "Scheduled")
    assert event["note"] == "Successfully assigned default/web to node-a: Steered rejected 3: no"
    assert event["reportingController"] == "moorage-binder"


@pytest.mark.parametrize("reason", [BindReason.NOT_FOUND, BindReason.OTHER_UID])
async def test_a_pod_that_is_gone_gets_no_event(
    client: KubeClient, api: Api, reason: BindReason
) -> None:
    async with recording(client) as made:
        made.events.record(binding_of(api.pod()), BindError(reason, "gone"))
        await made.writer.flush(5)
    assert await events_of(client) == []


async def test_a_failure_that_repeats_is_counted_in_one_event(client: KubeClient, api: Api) -> None:
    binding = binding_of(api.pod())
    async with recording(client) as made:
        for attempt in range(3):
            made.events.record(binding, BindError(BindReason.GATED, f"attempt {attempt}"))
        made.events.record(binding, BindError(BindReason.UNAVAILABLE, "another cause"))
        await made.writer.flush(5)
    counts = [event.get("series", {}).get("count", 1) for event in await events_of(client)]
    assert sorted(counts) == [1, 3]
    assert made.counted.events == ["written"] * 4


async def test_a_repeated_failure_makes_a_new_event_when_the_first_has_expired(
    client: KubeClient, api: Api
) -> None:
    binding = binding_of(api.pod())
    async with recording(client) as made:
        made.events.record(binding, GATED)
        await made.writer.flush(5)
        api.fault("patch", "events", status=404)
        made.events.record(binding, GATED)
        await made.writer.flush(5)
    assert len(await events_of(client)) == 2


async def test_an_event_is_written_once_even_if_the_answer_is_lost(
    client: KubeClient, api: Api
) -> None:
    api.fault("create", "events", done=True, drop=True)
    async with recording(client) as made:
        made.events.record(binding_of(api.pod()), GATED)
        await made.writer.flush(5)
    assert len(await events_of(client)) == 1
    assert made.counted.events == ["written"]


@pytest.mark.parametrize(
    ("status", "times", "first"), [(403, 1, "failed"), (500, 3, "failed"), (500, 2, "written")]
)
async def test_an_event_that_cannot_be_written_is_counted_and_the_next_one_comes_through(
    client: KubeClient, api: Api, status: int, times: int, first: str
) -> None:
    api.fault("create", "events", status=status, times=times)
    async with recording(client) as made:
        made.events.record(binding_of(api.pod("first")), GATED)
        made.events.record(binding_of(api.pod("second")), GATED)
        await made.writer.flush(5)
    assert made.counted.events == [first, "written"]


async def test_events_are_dropped_and_counted_when_too_many_wait(
    client: KubeClient, api: Api
) -> None:
    made = Recording(client, "failures", queue=2)
    pod = api.pod()
    for _ in range(5):
        made.events.record(binding_of(pod), GATED)
    assert made.counted.events == ["dropped"] * 3


async def test_events_that_cannot_be_written_do_not_keep_the_process(
    client: KubeClient, api: Api
) -> None:
    api.fault("create", "events", delay_seconds=60)
    async with recording(client) as made:
        made.events.record(binding_of(api.pod()), GATED)
        await made.writer.flush(0.05)


@pytest.mark.parametrize("name", ["a" * 253, "a" * 229 + "." + "b" * 23])
async def test_long_names_and_notes_are_shortened_to_what_the_api_server_takes(
    client: KubeClient, api: Api, name: str
) -> None:
    async with recording(client) as made:
        error = BindError(BindReason.GATED, "ü" * 2000)
        made.events.record(binding_of(api.pod(name)), error)
        await until(lambda: made.counted.events)
    assert made.counted.events == ["written"]
    assert len((await events_of(client))[0]["note"].encode()) <= 1024
