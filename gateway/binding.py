"""Hands binds to the binder, and keeps the pod assumed on its node meanwhile."""

import asyncio
import time

import grpc
import grpc.aio

from gateway.calls import BindCall, CallFailedError
from gateway.cluster.state import ClusterState
from gateway.decisions import BindRecord, Decision
from moorage.backoff import Backoff
from moorage.rpc.channel import connect
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub

REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
"""Answers after which the pod is certainly not bound to this node by this call."""


class Binding:
    """Binds pods through the binder; any number at a time, and any pod at most once."""

    def __init__(self, target: str, state: ClusterState) -> None:
        """Call the binder at *target*."""
        self._channel = connect(target)
        self._stub = BinderServiceStub(self._channel)
        self._state = state

    async def bind(self, call: BindCall, decision: Decision | None) -> None:
        """Bind the pod, or find it bound to this node already; note the outcome in *decision*.

        Raises:
            CallFailedError: It is not bound, or that is not known.
        """
        start = time.perf_counter()
        pod = self._state.pod(call.uid)
        if pod is not None and not pod.spec.node_name:
            self._state.assume(pod, call.node)
        error = ""
        try:
            await self._bind(call, pod.spec.scheduler_name if pod else "")
            self._state.confirm(call.uid)
        except grpc.aio.AioRpcError as failure:
            error = self._failed(call, failure)
            raise CallFailedError(error) from failure
        finally:
            if decision is not None:
                seconds = time.perf_counter() - start
                decision.bind = BindRecord(node=call.node, seconds=seconds, error=error)

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close()

    async def _bind(self, call: BindCall, profile: str) -> None:
        """Repeat the call while the binder cannot be reached: it is idempotent."""
        request = pb.BindRequest(
            namespace=call.namespace, name=call.name, uid=call.uid, node=call.node, profile=profile
        )
        backoff = Backoff(0.02, 0.5)
        loop = asyncio.get_running_loop()
        while True:
            remaining = max(call.deadline - loop.time(), 0.001)
            try:
                await self._stub.Bind(request, timeout=remaining, wait_for_ready=True)
            except grpc.aio.AioRpcError as failure:
                pause = backoff.next()
                again = failure.code() is grpc.StatusCode.UNAVAILABLE
                if not again or loop.time() + pause >= call.deadline:
                    raise
                await asyncio.sleep(pause)
            else:
                return

    def _failed(self, call: BindCall, failure: grpc.aio.AioRpcError) -> str:
        if failure.code() in REFUSALS:
            self._state.forget(call.uid)
        else:
            # It may be bound, or may yet be: keep its place until the watch tells, or for a while.
            self._state.confirm(call.uid)
        return f"binder service: {failure.details()}"
