"""Indexes from what nodes hold back to their rows."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from moorage.models import ContainerImage, ContainerPort
from moorage.verdicts import Mask

ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, never listened on


class ImageIndex:
    """Which nodes have an image, and how large it is there."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Take over the images of *row*."""
        for image in images:
            for name in image.names:
                self._sizes.setdefault(name, {})[row] = image.size_bytes

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Forget the images of *row*."""
        for image in images:
            for name in image.names:
                sizes = self._sizes.get(name)
                if sizes is not None and sizes.pop(row, None) is not None and not sizes:
                    del self._sizes[name]

    def sizes(self, name: str, capacity: int) -> tuple[npt.NDArray[np.int64], int]:
        """Return the size in bytes at each row, 0 where absent, and how many nodes have it."""
        sizes = self._sizes.get(name, {})
        column = np.zeros(capacity, np.int64)
        column[list(sizes)] = list(sizes.values())
        return column, len(sizes)


class PortIndex:
    """Which host ports are taken on which nodes."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[ContainerPort]) -> None:
        """Take *ports* on *row*."""
        for port in ports:
            rows = self._addresses.setdefault((port.protocol, port.host_port), {})
            rows.setdefault(row, Counter())[port.host_ip] += 1

    def remove(self, row: int, ports: Iterable[ContainerPort]) -> None:
        """Give *ports* of *row* back."""
        for port in ports:
            key = (port.protocol, port.host_port)
            taken = self._addresses[key][row]
            taken[port.host_ip] -= 1
            if not +taken:
                del self._addresses[key][row]
                if not self._addresses[key]:
                    del self._addresses[key]

    def conflicts(self, ports: Iterable[ContainerPort], capacity: int) -> Mask:
        """Return for each row whether one of *ports* is taken there; an unset address takes all."""
        conflict = np.zeros(capacity, np.bool_)
        for port in ports:
            for row, taken in self._addresses.get((port.protocol, port.host_port), {}).items():
                conflict[row] |= any(_overlap(port.host_ip, ip) for ip, n in taken.items() if n)
        return conflict


def _overlap(one: str, other: str) -> bool:
    return one in ANY_ADDRESS or other in ANY_ADDRESS or one == other
