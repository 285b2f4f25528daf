"""The nodes at the API server: reads them all, writes annotations of one."""

from collections.abc import Mapping
from typing import Final

import msgspec
import structlog

from moorage.models import NodeManifest, decode_node
from moorage_host.kube import KubeClient, KubeStatusError

FIELD_MANAGER: Final = "moorage-annotator"
"""The field manager, as `kubectl get node --show-managed-fields` shows it."""

GONE: Final = 404

_PATH: Final = "/api/v1/nodes"
_log = structlog.get_logger()


class Nodes:
    """The nodes of one cluster.

    Nothing is sent again here: what failed is asked for in the next round. Every method raises
    KubeStatusError if the API server refuses, KubeUnreachableError or TimeoutError if it does not
    answer, KubeError if it answers something else.

    Args:
        client: The connection; the caller closes it.
        timeout: Time for one request, in seconds.
    """

    def __init__(self, client: KubeClient, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    async def read(self) -> list[NodeManifest]:
        """Return all nodes; one that cannot be understood is logged and left out."""
        items = await self._client.items(_PATH, timeout=self._timeout)
        return [node for raw in items if (node := _decoded(raw))]

    async def annotate(self, name: str, annotations: Mapping[str, str | None]) -> bool:
        """Write annotations, remove those that are None; return whether the node still exists."""
        answer = await self._client.request(
            "PATCH",
            f"{_PATH}/{name}",
            timeout=self._timeout,
            query={"fieldManager": FIELD_MANAGER},
            body=msgspec.json.encode({"metadata": {"annotations": annotations}}),
            content_type="application/merge-patch+json",
        )
        try:
            answer.check()
        except KubeStatusError as error:
            if error.status != GONE:
                raise
            return False
        return True


def _decoded(raw: msgspec.Raw) -> NodeManifest | None:
    try:
        return decode_node(bytes(raw))
    except msgspec.DecodeError as error:
        _log.warning("A node cannot be read and is left out.", error=str(error))
        return None
