"""Whole nodes in calls, for callers that do not trust the extender to know them.

Decoding a node takes ten times as long as hashing its text, and between two calls few nodes change.
So manifests are cached by the hash of their text; unchanged nodes keep the same manifest.
"""

import msgspec

from gateway.calls import GivenNode
from gateway.edge.json.errors import decode_each
from moorage.models import NodeManifest, decode_node


class GivenNodesCache:
    """Reads nodes and recognises unchanged ones.

    Args:
        limit: How many nodes of one call are recognised in the next. Up to twice as many
            manifests are held, 25 kB each when they list 50 images.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._recent: dict[int, NodeManifest] = {}
        self._older: dict[int, NodeManifest] = {}

    async def read(self, items: list[msgspec.Raw]) -> dict[str, GivenNode]:
        """Decode nodes, by name; raises BadRequestError with the path of what is wrong."""
        manifests = await decode_each(self._decode, items, "$.Nodes.items[{}]".format)
        return {
            manifest.metadata.name: GivenNode(manifest=manifest, raw=item)
            for manifest, item in zip(manifests, items, strict=True)
        }

    def _decode(self, text: msgspec.Raw) -> NodeManifest:
        encoded = bytes(text)
        # 64 bits of SipHash under this process's secret key.
        key = hash(encoded)
        manifest = self._recent.get(key)
        if manifest is None:
            encoded.decode()  # the answer repeats it, also what decoding skips
            manifest = self._older.pop(key, None) or decode_node(text)
            if not manifest.metadata.name:
                raise msgspec.ValidationError("The name is empty - at `$.metadata.name`")
            self._keep(key, manifest)
        return manifest

    def _keep(self, key: int, manifest: NodeManifest) -> None:
        if len(self._recent) >= self._limit:
            self._recent, self._older = {}, self._recent
        self._recent[key] = manifest
