"""Runs cases of one target, and finds out whether what must always hold did.

Whatever a case is: no exception that the target does not expect, no answer that it refuses, an
answer in time, and at most 1 kB of log.
"""

import asyncio
import hashlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from moorage_host.process.logs import configure_logging
from tools.fuzz.targets.target import Target, WrongError

SECONDS = 10.0
"""After which a case counts as one that hangs. Long, as machines that run tests are slow."""

LOG_BYTES = 1024
MINIMISING = 300  # runs
MINIMISING_SECONDS = 20.0  # since a smaller case may hang although the found one does not

ROOT = str(Path(__file__).parents[2])


class Log:
    """A file in the place of standard error, so that what is written can be counted."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - until the end
        sys.stderr = self._file
        self.flush = configure_logging("info", "json")

    def size(self) -> int:
        """Return how much was written; a thread writes the rest soon."""
        return os.fstat(self._file.fileno()).st_size

    def end(self, size: int) -> str:
        """Return what was written last."""
        start = max(self.size() - size, 0)
        return os.pread(self._file.fileno(), size, start).decode(errors="replace")


class Judge:
    """Runs the cases of one target in this process, whose standard error it takes over."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.problem = ""
        self._log = Log()
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._loop.run_until_complete(target.open(self._stack))

    def close(self) -> None:
        """Stop what the target runs."""
        self._loop.run_until_complete(self._stack.aclose())
        self._loop.close()

    def signature(self, data: bytes) -> str:
        """Run a case; return what is wrong in one line that other cases share, "" if nothing is.

        `problem` has the whole of it.
        """
        before, start = self._log.size(), time.monotonic()
        try:
            self._loop.run_until_complete(self._case(data))
        except TimeoutError:
            return self._wrong(f"hangs for {SECONDS} s", traceback.format_exc())
        except WrongError as error:
            return self._wrong(error.what, error.detail)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return self._wrong(f"{type(error).__name__} in {_place(error)}", traceback.format_exc())
        if (seconds := time.monotonic() - start) > SECONDS:
            return self._wrong("takes too long", f"{seconds:.1f} s")
        if self._log.size() - before > self.target.log_bytes:
            self._log.flush()  # some may be of cases before, so once more
            before = self._log.size()
            with suppress(Exception):
                self._loop.run_until_complete(self._case(data))
            self._log.flush()
            if (size := self._log.size() - before) > self.target.log_bytes:
                return self._wrong("logs too much", f"{size} bytes: {self._log.end(size)}")
        return ""

    def minimised(self, data: bytes, signature: str) -> bytes:
        """Return a smaller case with the same signature; one that takes long stays as it is."""
        start = time.monotonic()
        if self.signature(data) != signature or time.monotonic() - start > 1:
            return data

        def same(smaller: bytes) -> bool:
            return self.signature(smaller) == signature

        return _minimised(data, same)

    async def _case(self, data: bytes) -> None:
        async with asyncio.timeout(SECONDS):
            await self.target.case(data)

    def _wrong(self, signature: str, detail: str) -> str:
        self.problem = f"{signature}\n{detail}"
        return signature


def file_name(data: bytes) -> str:
    """Return what the file of a case is called."""
    return hashlib.sha256(data).hexdigest()[:12]


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(ROOT)]
    own = [frame for frame in frames if "/site-packages/" not in frame.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].name}" if own else "?"


def _minimised(data: bytes, same: Callable[[bytes], bool]) -> bytes:
    """Cut pieces out, large ones first."""
    runs, size, end = 0, max(len(data) // 2, 1), time.monotonic() + MINIMISING_SECONDS

    def may_run() -> bool:
        return runs < MINIMISING and time.monotonic() < end

    while may_run():
        at = 0
        while at < len(data) and may_run():
            runs += 1
            smaller = data[:at] + data[at + size :]
            if same(smaller):
                data = smaller
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return data
