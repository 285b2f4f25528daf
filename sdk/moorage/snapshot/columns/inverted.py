"""Indexes from what nodes hold back to their rows."""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from moorage.models import ContainerImage, ContainerPort, Disk
from moorage.snapshot.verdicts import Mask

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never listened on
"""What a port without address takes; as in kube-scheduler "::" is an address like any other."""


class ImageIndex:
    """Which nodes have an image, and how large it is there."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}
        self._arrays: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]] = {}

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Take over the images of *row*."""
        for image in images:
            for name in image.names:
                self._sizes.setdefault(name, {})[row] = image.size_bytes
                self._arrays.pop(name, None)

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Forget the images of *row*."""
        for image in images:
            for name in image.names:
                sizes = self._sizes.get(name)
                if sizes is not None and sizes.pop(row, None) is not None and not sizes:
                    del self._sizes[name]
                self._arrays.pop(name, None)

    def sizes(self, name: str, capacity: int) -> tuple[npt.NDArray[np.int64], int]:
        """Return the size in bytes at each row, 0 where absent, and how many nodes have it."""
        rows, sizes = self._as_arrays(name)
        column = np.zeros(capacity, np.int64)
        column[rows] = sizes
        return column, len(rows)

    def named(self, accepts: Callable[[str], bool], capacity: int) -> Mask:
        """Return for each row whether one of its images has a name that *accepts* accepts."""
        mask = np.zeros(capacity, np.bool_)
        for name in filter(accepts, self._sizes):
            mask[self._as_arrays(name)[0]] = True
        return mask

    def _as_arrays(self, name: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        arrays = self._arrays.get(name)
        if arrays is None:
            sizes = self._sizes.get(name, {})
            arrays = (np.array([*sizes], np.intp), np.array([*sizes.values()], np.int64))
            if sizes:
                self._arrays[name] = arrays
        return arrays


class PortIndex:
    """Which host ports are taken on which nodes."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[str, Counter[int]]] = {}

    def add(self, row: int, ports: Iterable[ContainerPort]) -> None:
        """Take *ports* on *row*."""
        for port in ports:
            addresses = self._rows.setdefault((port.protocol, port.host_port), {})
            addresses.setdefault(port.host_ip or ANY_ADDRESS, Counter())[row] += 1

    def remove(self, row: int, ports: Iterable[ContainerPort]) -> None:
        """Give *ports* of *row* back."""
        for port in ports:
            key, address = (port.protocol, port.host_port), port.host_ip or ANY_ADDRESS
            rows = self._rows[key][address]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._rows[key][address]
            if not self._rows[key]:
                del self._rows[key]

    def conflicts(self, ports: Iterable[ContainerPort], capacity: int) -> Mask:
        """Return for each row whether one of *ports* is taken there; an unset address takes all."""
        conflict = np.zeros(capacity, np.bool_)
        for port in ports:
            wanted = port.host_ip or ANY_ADDRESS
            for address, rows in self._rows.get((port.protocol, port.host_port), {}).items():
                if ANY_ADDRESS in (wanted, address) or wanted == address:
                    conflict[list(rows)] = True
        return conflict


class DiskIndex:
    """Which network disks are mounted on which nodes, for reading only and for writing."""

    def __init__(self) -> None:
        self._rows: dict[Disk, Counter[int]] = {}

    def add(self, row: int, disks: Iterable[Disk]) -> None:
        """Mount *disks* on *row*."""
        for disk in disks:
            self._rows.setdefault(disk, Counter())[row] += 1

    def remove(self, row: int, disks: Iterable[Disk]) -> None:
        """Unmount *disks* from *row*."""
        for disk in disks:
            rows = self._rows[disk]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._rows[disk]

    def conflicts(self, disks: Iterable[Disk], capacity: int) -> Mask:
        """Return for each row whether one of *disks* is mounted there, and one mount may write."""
        conflict = np.zeros(capacity, np.bool_)
        for identity, read_only in disks:
            for other in (False,) if read_only else (False, True):
                conflict[list(self._rows.get(Disk(identity, other), ()))] = True
        return conflict
