"""What kubectl prints: the Table form of lists, objects and watches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sandbox.apiserver.printing import age, pod_state, short
from tests.sandbox.apiserver.support import EVENTS, NODES, Http, Reply, node

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)

GATED = {"type": "PodScheduled", "reason": "SchedulingGated"}


def waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


def terminated(reason: str) -> dict[str, Any]:
    return {"state": {"terminated": {"reason": reason}}}


def cells(table: Any, row: int = 0) -> dict[str, Any]:
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][row]["cells"], strict=True))


async def table(http: Http, path: str) -> Reply:
    reply = await http.get(path, accept=TABLE)
    assert reply.body["kind"] == "Table"
    return reply


async def test_nodes_show_what_kubectl_users_expect(http: Http) -> None:
    ready = node(
        conditions=[{"type": "Ready", "status": "True"}],
        addresses=[{"address": "web"}, {"type": "InternalIP", "address": "10.0.0.1"}],
        nodeInfo={"kubeletVersion": "v1.36.0", "osImage": "Linux"},
    )
    ready["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    ready["spec"] = {"unschedulable": True}
    await http.create(NODES, ready)
    shown = cells((await table(http, NODES)).body)
    assert shown == {
        "Name": "n1",
        "Status": "Ready,SchedulingDisabled",
        "Roles": "control-plane",
        "Age": "0s",
        "Version": "v1.36.0",
        "Internal-IP": "10.0.0.1",
        "OS-Image": "Linux",
    } | {"Age": shown["Age"]}


async def test_events_show_their_object(http: Http) -> None:
    about = {"kind": "Pod", "name": "web", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Failed"}
    await http.create(EVENTS, event | {"type": "Warning", "message": "no luck\n", "count": 3})
    shown = cells((await table(http, EVENTS)).body)
    expected = {"Object": "pod/web", "Reason": "Failed", "Message": "no luck", "Count": 3}
    assert expected.items() <= shown.items()
    view = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert cells((await table(http, view)).body) == shown


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/coordination.k8s.io/v1/leases",
    ],
)
async def test_the_other_resources_have_tables_too(http: Http, path: str) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await http.create(leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    shown = cells((await table(http, path)).body)
    assert len(shown) > 2
    assert None not in shown.values()


async def test_jobs_show_how_far_they_are(http: Http) -> None:
    path = "/apis/batch/v1/namespaces/default/jobs"
    container = {"name": "main", "image": "job:1"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    for name, spec in (("a", {"completions": 3}), ("b", {"parallelism": 2, "suspend": True})):
        body = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
        await http.create(path, body)
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 3}
    await http.patch(f"{path}/a/status", {"status": done})
    body = (await table(http, path)).body
    shown = [(cells(body, row)["Status"], cells(body, row)["Completions"]) for row in range(2)]
    assert shown == [("Complete", "3/3"), ("Suspended", "0/1 of 2")]


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
    ],
)
def test_the_state_of_a_pod_in_a_word(status: dict[str, Any], expected: str) -> None:
    assert pod_state({"metadata": {}, "spec": {}, "status": status}) == expected


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    leaving = {"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}
    assert pod_state(leaving) == "Terminating"
