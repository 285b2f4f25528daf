"""A binder of the real parts that may be killed, without the network before it."""

import asyncio
from collections.abc import Sequence

import grpc

from gateway.binding.client import BinderError
from moorage import Binding, BindPlugin
from moorage.v1 import binder_pb2
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.errors import CallError
from services.binder.binding.binder import Binder
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError
from services.binder.binding.policies import Policies
from services.binder.snapshots import Snapshots
from services.binder.wire import binding_from_proto, call_error
from tools.inprocess.binder import Observed, bound
from tools.model.api import Api, Writes

LIMITS = BindLimits(retry_initial=0.01, retry_maximum=0.1, retry_reserve=0.05, written_binds=2)
"""The memory is short, so that gateways that take over have to list pods."""


class BinderProcess:
    """One binder after the other.

    Attributes:
        binder: The one that runs.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.binder = self._start()

    def restart(self) -> None:
        """Kill the binder, with its POSTs that the API server has not done; start another one."""
        died, self.binder = self.binder, self._start()
        self._api.held.clear()
        for attempt in list(died.attempts):
            attempt.task.cancel()

    async def bind(
        self, message: binder_pb2.BinderServiceSessionRequest, deadline: float
    ) -> Sequence[binder_pb2.BindPluginReport]:
        """Bind as the servicer would; a `gateway.binding.client.BinderClient` to the gateway."""
        request = message.bind
        binder, sent_at = self.binder, asyncio.get_running_loop().time()
        seconds = max(deadline - sent_at, 0.001)
        try:
            await bound(binder, binding_from_proto(request, 0), seconds, epoch=request.epoch)
        except BindError as error:
            failed = call_error(error)
            raise BinderError(failed.code, failed.message, failed.reason) from error
        except CallError as error:
            raise BinderError(error.code, error.message, error.reason) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.binder is binder or (task and task.cancelling()):
                raise
            code = grpc.StatusCode.UNAVAILABLE
            raise BinderError(code, "the stream broke", sent_at=sent_at) from None
        return ()

    def _start(self) -> Binder:
        def epoch_of(binding: Binding) -> int:
            return int(binder._newest[binding.uid].epoch)

        binder = Binder(
            Writes(self._api, epoch_of),
            Policies(Registry(BindPlugin)),
            Snapshots(),
            limits=LIMITS,
            metrics=Observed(),
        )
        return binder
