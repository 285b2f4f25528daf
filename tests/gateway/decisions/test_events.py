"""What the API server says about a pod is shown beside what Moorage decided."""

from pathlib import Path

from tools.inprocess.gateway import gateway


async def test_the_page_of_a_pod_has_its_events(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running:
        made = running.api.pod("p")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]},
            "reason": "FailedScheduling",
            "message": "0/3 nodes are available",
            "type": "Warning",
            "action": "Scheduling",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
            "eventTime": "2026-11-27T01:02:03.000000Z",
        }
        other = {
            **event,
            "metadata": {"name": "q.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod"},
        }
        for each in (event, other):
            running.api.create("/apis/events.k8s.io/v1/namespaces/default/events", each)
        _, answer = await running.get("/decisions/default/p?explain=true")
        (found,) = answer["events"]
        assert found["by"] == "default-scheduler"
        assert found["note"] == "0/3 nodes are available"
        assert answer["created"] == made["metadata"]["creationTimestamp"]
        running.api.fault("list", "events", status=403)
        _, answer = await running.get("/decisions/default/p?explain=true")
        assert answer["events"] is None
