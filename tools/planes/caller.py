"""A running gateway, as kube-scheduler and people see it."""

import json
import re
from collections.abc import Iterable
from typing import Any

import aiohttp

from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, pod


class Caller:
    """Calls the extender, and asks the admin port."""

    def __init__(self, extender: str, admin: str) -> None:
        """Use the URLs of both ports, without TLS."""
        self._extender = extender
        self._admin = admin

    async def call(self, verb: str, body: Object) -> Any:
        """Call the gateway as kube-scheduler does."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._extender}/{verb}", json=body) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json(content_type=None)

    async def filter(self, obj: Object | str, nodes: Iterable[str]) -> Any:
        """Call the filter verb for a pod; a name is one that does not exist."""
        asked = pod(obj) if isinstance(obj, str) else obj
        return await self.call("filter", {"Pod": asked, "Nodes": None, "NodeNames": list(nodes)})

    async def prioritize(self, obj: Object, nodes: Iterable[str]) -> Any:
        """Call the prioritize verb."""
        body = {"Pod": obj, "Nodes": None, "NodeNames": list(nodes)}
        return await self.call("prioritize", body)

    async def bind(self, obj: Object, node: str) -> str:
        """Call the bind verb; return the error, "" for success."""
        metadata = obj["metadata"]
        names = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"]}
        answer = await self.call("bind", {**names, "PodUID": metadata["uid"], "Node": node})
        return str(answer["Error"] or "")

    async def get(self, path: str) -> Object:
        """Ask the admin port."""
        answer: Object = json.loads(await self._text(path))
        return answer

    async def decision(self, name: str, namespace: str = NAMESPACE) -> Object:
        """Return the newest attempt on a pod."""
        newest, *_ = await self.decisions(name, namespace)
        return newest

    async def decisions(self, name: str, namespace: str = NAMESPACE) -> list[Object]:
        """Return the attempts on a pod that are kept, the newest first."""
        attempts: list[Object] = (await self.get(f"decisions/{namespace}/{name}"))["attempts"]
        return attempts

    async def metric(self, name: str, **labels: str) -> float:
        """Return a sample of the gateway's metrics, 0 if there is none."""
        for line in (await self._text("metrics")).splitlines():
            found = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
            if found and all(f'{k}="{v}"' in (found[1] or "") for k, v in labels.items()):
                return float(found[2])
        return 0.0

    async def _text(self, path: str) -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self._admin}/{path}") as response,
        ):
            return await response.text()
