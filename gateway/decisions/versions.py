"""Which code plugins had: the versions that replicas have listed, by the digest of all of them."""

from collections import OrderedDict
from collections.abc import Mapping

KEPT = 32
"""Digests, the newest; a roll-out brings one for filters and one for scorers."""


class PluginVersions:
    """The version of each plugin, by the digest of all plugins of a replica."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def note(self, digest: str, versions: Mapping[str, str]) -> None:
        """Keep the versions by plugin that a digest stands for."""
        self._kept[digest] = versions
        self._kept.move_to_end(digest)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def of(self, digest: str) -> Mapping[str, str]:
        """Return the versions by plugin; none if they are not kept."""
        return self._kept.get(digest, {})
