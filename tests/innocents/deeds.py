"""Plugins that do something bad to their process for pods with a label: one class for each deed."""

import ctypes
import os
import re
import resource
import signal
import threading
import time
from abc import abstractmethod
from pathlib import Path

from moorage import FilterPlugin, Node, Pod

LIMIT = 64 << 20
"""Bytes that a plugin may allocate, where its process has a limit."""


class _Deed(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> None:
        """Take a moment, so that a kill may hit it; do it for a pod with the label."""
        time.sleep(0.001)
        if "poison" in pod.labels:
            self.do()

    @abstractmethod
    def do(self) -> None:
        """Do it."""


class Exit(_Deed):
    """Ends the process with a code."""

    def do(self) -> None:
        os._exit(3)


class Segfault(_Deed):
    """Reads where nothing is."""

    def do(self) -> None:
        ctypes.string_at(0)


class OutOfMemory(_Deed):
    """Is ended as the kernel does when the container's memory is used up."""

    def do(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class CloseAll(_Deed):
    """Closes what is not its own."""

    def do(self) -> None:
        os.closerange(0, 1000)


class Allocate(_Deed):
    """Allocates more than the process may."""

    def do(self) -> None:
        reserved = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (reserved + LIMIT, hard))
        try:
            bytearray(4 << 30)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class Loop(_Deed):
    """Never returns."""

    def do(self) -> None:
        while True:
            pass


class Regex(_Deed):
    """Never returns from C."""

    def do(self) -> None:
        re.fullmatch("(a+)+", "a" * 60 + "b")


class Thread(_Deed):
    """Leaves a thread that takes a processor for ten seconds."""

    def do(self) -> None:
        end = time.monotonic() + 10

        def run() -> None:
            while time.monotonic() < end:
                pass

        if threading.active_count() < 50:
            threading.Thread(target=run, daemon=True).start()


class LeaveByException(_Deed):
    """Raises what ends a program."""

    def do(self) -> None:
        raise SystemExit(3)


class Nothing(_Deed):
    """Does nothing bad."""

    def do(self) -> None:
        pass
