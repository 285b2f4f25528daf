"""Rejected pods are tried again after a write to their status."""

from datetime import datetime
from pathlib import Path

import grpc
import grpc.aio
import pytest

from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from tools.inprocess.api import Api, Object
from tools.inprocess.binder import serving

TYPE = "moorage.io/RetryRequested"


def reference(pod: Object, **changes: str) -> pb.PodReference:
    metadata = pod["metadata"]
    fields = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return pb.PodReference(**{**fields, **changes})


async def retry(kubeconfig: Path, *pods: pb.PodReference) -> int:
    request = pb.BinderServiceRetryPodsRequest(pods=pods, plugin="Prices", reason="new prices")
    async with serving(kubeconfig) as (_, channel):
        return int((await BinderServiceStub(channel).RetryPods(request)).written)


def asked(api: Api, name: str) -> list[Object]:
    conditions = api.read_pod(name).get("status", {}).get("conditions") or []
    return [condition for condition in conditions if condition["type"] == TYPE]


async def test_each_pod_gets_a_condition_beside_those_it_has(api: Api, kubeconfig: Path) -> None:
    pods = [api.pod("a"), api.pod("b")]
    assert await retry(kubeconfig, *map(reference, pods)) == 2
    for name in "ab":
        (condition,) = asked(api, name)
        assert (condition["reason"], condition["message"]) == ("Prices", "new prices")
        assert datetime.fromisoformat(condition["lastProbeTime"])


async def test_pods_that_are_gone_are_left_out(api: Api, kubeconfig: Path) -> None:
    pod = api.pod("a")
    gone = reference(pod, name="gone")
    replaced = reference(pod, uid="another")
    assert await retry(kubeconfig, gone, replaced) == 0
    assert asked(api, "a") == []
    assert await retry(kubeconfig, gone, reference(pod)) == 1


async def test_a_missing_right_is_reported(api: Api, kubeconfig: Path) -> None:
    pod = api.pod("a")
    api.fault("patch", "pods/status", status=403)
    with pytest.raises(grpc.aio.AioRpcError, match="pods are not tried again") as caught:
        await retry(kubeconfig, reference(pod))
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_pod_that_an_admission_policy_protects_does_not_keep_others_waiting(
    api: Api, kubeconfig: Path
) -> None:
    pods = [reference(api.pod(name)) for name in "ab"]
    api.fault("patch", "pods/status", status=422)
    assert await retry(kubeconfig, *pods) == 1


async def test_bad_names_and_too_many_pods_are_refused(api: Api, kubeconfig: Path) -> None:
    pod = reference(api.pod("a"))
    for pods, problem in (
        ([reference(api.pod("b"), name="B!")], "name is 'B!'"),
        ([pod] * 1001, "1001"),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match=problem) as caught:
            await retry(kubeconfig, *pods)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert asked(api, "a") == []
