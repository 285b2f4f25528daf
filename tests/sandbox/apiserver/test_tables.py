"""What kubectl prints in cells; whole tables are recorded requests."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sandbox.apiserver.printing import age, pod_state, short

GATED = {"type": "PodScheduled", "reason": "SchedulingGated"}


def waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


def terminated(reason: str) -> dict[str, Any]:
    return {"state": {"terminated": {"reason": reason}}}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (150, "2m"),
        (7199, "119m"),
        (3 * 3600 + 300, "3h"),
        (47 * 3600, "47h"),
        (51 * 3600, "2d"),
        (740 * 86400, "740d"),
    ],
)
def test_ages_get_coarser_as_they_grow(seconds: int, expected: str) -> None:
    present = datetime(2026, 1, 1, tzinfo=UTC)
    assert short(seconds) == expected
    assert age((present - timedelta(seconds=seconds)).isoformat(), present) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Running"}, "Running"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "containerStatuses": [waiting("ErrPull")]}, "ErrPull"),
        ({"phase": "Succeeded", "containerStatuses": [terminated("Completed")]}, "Completed"),
        ({"phase": "Pending", "conditions": [GATED]}, "SchedulingGated"),
        ({}, ""),
        ({"phase": "Running", "deletionTimestamp": "x"}, "Terminating"),
    ],
)
def test_the_state_of_a_pod_in_a_word(status: dict[str, Any], expected: str) -> None:
    metadata = {"deletionTimestamp": status.pop("deletionTimestamp", None)}
    assert pod_state({"metadata": metadata, "spec": {}, "status": status}) == expected
