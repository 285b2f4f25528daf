"""The subresource scale: what kubectl scale reads and writes."""

import pytest

from tests.sandbox.apiserver.resources.test_any_kind import WORKLOAD
from tests.sandbox.apiserver.support import Http

APPS = "/apis/apps/v1/namespaces/default"


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
async def test_the_number_of_replicas_is_read_and_written(http: Http, plural: str) -> None:
    path = f"{APPS}/{plural}"
    await http.create(path, WORKLOAD)
    await http.patch(f"{path}/x/status", {"status": {"replicas": 1}})
    scale = (await http.get(f"{path}/x/scale")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 1})
    scale["spec"]["replicas"] = 3
    assert (await http.send("PUT", f"{path}/x/scale", scale)).body["spec"] == {"replicas": 3}
    stale = await http.send("PUT", f"{path}/x/scale", scale)
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert (await http.patch(f"{path}/x/scale", {"spec": {"replicas": 5}})).code == 200
    stored = (await http.get(f"{path}/x")).body
    assert (stored["spec"]["replicas"], stored["status"]["replicas"]) == (5, 1)
    assert stored["metadata"]["generation"] == 3
    negative = await http.patch(f"{path}/x/scale", {"spec": {"replicas": -1}})
    assert (negative.code, negative.body["reason"]) == (422, "Invalid")
