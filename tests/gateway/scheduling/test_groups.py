"""Pod groups: a group that was given up leaves no claim, and failing binds slow down."""

from pathlib import Path

import pytest

from gateway.scheduling import groups
from tests.gateway.scheduling.test_claims import NAMES, OCCUPIED, claims, running, task
from tools.inprocess.gateway import Gateway, bind
from tools.planes.embedded import Object
from tools.waiting import until


def member(process: Gateway, name: str, run: str, group: str = "ring") -> Object:
    """Create a pod of a group, which needs a node of its own if its run is its own."""
    return process.api.pod(
        name,
        labels={"tekton.dev/pipelineRun": run},
        schedulerName="moorage",
        schedulingGroup={"podGroupName": group},
    )


async def place(process: Gateway, pods: list[Object], *names: str) -> list[str]:
    """Filter pods one after another; return what each claims, "" for none."""
    answers = [await process.filter(one, *names) for one in pods]
    return [(answer["NodeNames"] or [""])[0] for answer in answers]


async def test_a_group_of_which_a_member_was_rejected_is_over_with_the_next_pod(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b", "c")]
        assert await place(process, ring, "n1", "n2") == ["n2", "n1", ""]
        assert await place(process, [task(process, "single", "s")], "n1", "n2") == ["n2"]


async def test_a_group_that_was_given_up_leaves_no_claim(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=0.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        single = task(process, "single", "s")
        assert await place(process, ring, "n1", "n2") == ["n2", "n1"]
        assert await place(process, [single], "n1", "n2") == [""], "the members may still be bound"
        await until(lambda: claims(process) == 0)
        assert await place(process, [single], "n1", "n2") == ["n2"]


async def test_a_group_whose_members_are_filtered_keeps_its_claims(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=0.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        assert await place(process, ring[:1], *NAMES) == ["n3"]
        answer = await process.filter(ring[1], *NAMES)
        assert answer["FailedNodes"] == {"n3": OCCUPIED}
        assert await bind(process, ring[0], "n3") == ""
        assert await bind(process, ring[1], "n2") == ""


async def test_the_next_pass_of_a_group_begins_without_claims(tmp_path: Path) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b", "c")]
        first = await place(process, ring, *NAMES)
        assert await place(process, ring, *NAMES) == first == ["n3", "n2", "n1"]
        # Only members of this pass count: c would find no node beside those of the one before.
        assert await place(process, ring[:1], *NAMES) == ["n3"]
        assert claims(process) == 1


async def test_a_bind_to_the_placement_of_an_earlier_pass_drops_the_later_one(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        ring = [member(process, name, name) for name in ("a", "b")]
        assert await place(process, ring, "n1", "n2") == ["n2", "n1"]
        assert await bind(process, ring[0], "n1") == ""
        assert await bind(process, ring[1], "n2") == ""


async def test_groups_of_other_namespaces_and_names_do_not_touch_each_other(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, group_bind_wait=60.0) as process:
        first, second = member(process, "a", "a"), member(process, "b", "b", group="other")
        assert await place(process, [first, second], "n1", "n2") == ["n2", "n1"]
        assert await place(process, [first], "n1", "n2") == ["n2"]
        assert claims(process) == 2


async def test_binds_of_a_group_that_fail_wait_longer_each_time(
    tmp_path: Path, sleeps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.0123  # which nothing else waits
    monkeypatch.setattr(groups, "FIRST_PAUSE", pause)

    def waited() -> list[float]:
        found = [seconds for seconds in sleeps if seconds in (pause, 2 * pause)]
        sleeps.clear()
        return found

    async with running(tmp_path, group_bind_wait=60.0) as process:
        (one,) = [member(process, "a", "a")]
        others = [task(process, "x", "x")]
        assert await place(process, others, "n1") == ["n1"]
        for expected in ([], [pause]):
            assert OCCUPIED in await bind(process, one, "n1")
            assert waited() == expected
        assert await bind(process, one, "n2") == ""
        assert waited() == [2 * pause]
        assert await bind(process, one, "n2") == ""
        assert waited() == [], "after a success nothing waits"
