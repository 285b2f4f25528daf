"""Which code plugins had: the versions that replicas have listed, by the digest of all of them."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import sha256

from moorage.v1 import types_pb2 as pb

DIGITS = 16
"""Hexadecimal digits of a version; decisions show them."""

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


def digest_of(plugins: Iterable[pb.Plugin]) -> str:
    """Return a digest of the versions of plugins: replicas with equal ones give equal answers."""
    versions = sorted(f"{plugin.name}={plugin.version}" for plugin in plugins)
    return sha256("\n".join(versions).encode()).hexdigest()[:DIGITS]


def versions_of(plugins: Iterable[pb.Plugin]) -> dict[str, str]:
    """Return the version of each plugin, by its name."""
    return {plugin.name: plugin.version[:DIGITS] for plugin in plugins}
