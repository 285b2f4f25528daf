"""Reports in Events what is wrong with the policy, for operators who do not look at `/readyz`."""

import asyncio

import msgspec
import structlog

from moorage_host.kube import KubeClient, KubeError
from moorage_host.kube.events import events_path, make_event

WAITING = 100
"""Events that wait to be written; more are dropped."""

WRITE_SECONDS = 10.0

TRIES = 5

_log = structlog.get_logger()


class PolicyEvents:
    """Writes Events about the policy into the namespace of this process, in the background."""

    def __init__(self, client: KubeClient, instance: str) -> None:
        """Write through *client* in the name of this gateway, *instance*."""
        self._client = client
        self._instance = instance
        self._queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue(WAITING)

    def report(self, reason: str, note: str) -> None:
        """Queue a warning, if there is room; never waits."""
        if not self._queue.full():
            self._queue.put_nowait((reason, note))

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            await self._write(*await self._queue.get())

    async def _write(self, reason: str, note: str) -> None:
        namespace = self._client.namespace
        event = make_event(
            {
                "apiVersion": "moorage.io/v1alpha1",
                "kind": "MoorageConfiguration",
                "namespace": namespace,
                "name": "policy",
            },
            kind="Warning",
            reason=reason,
            action="Reload",
            note=note,
            controller="moorage-gateway",
            instance=self._instance,
        )
        body, problem = msgspec.json.encode(event), ""
        for _ in range(TRIES):
            try:
                answer = await self._client.request(
                    "POST", events_path(namespace), body=body, timeout=WRITE_SECONDS
                )
                answer.check()
            except (KubeError, TimeoutError) as error:
                problem = str(error)
                await asyncio.sleep(1.0)
            else:
                return
        _log.warning("An Event was not written", reason=reason, error=problem)
