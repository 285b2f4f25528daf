"""Runs several processes, starts those again that die, and stops them all in the end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

from cli.up.processes.forking import ProcessFailedError
from cli.up.processes.process import Process

RESTART_PAUSE = 0.2
"""Seconds between the end of a process and its next start; doubles with each death in a row."""

STEADY_SECONDS = 20.0
"""A process that ran for longer than this has not died in a row with the last time."""

DEATHS = 5
"""Deaths in a row after which a process is given up."""


class Processes:
    """Runs several processes, restarts those that die, and stops them all in the end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """Report restarts and ends of processes with *report*."""
        self._report = report
        self._groups: list[Sequence[Process]] = []

    async def start(self, *groups: Sequence[Process]) -> None:
        """Start all processes at once and wait until all of them serve.

        Args:
            groups: What depends on whom: the last group is stopped first.

        Raises:
            ProcessFailedError: In an ExceptionGroup: one does not.
        """
        self._groups.extend(groups)
        await _all_at_once(process.start() for process in chain(*groups))

    @property
    def names(self) -> Sequence[str]:
        """What the processes are called."""
        return [process.name for process in self._all()]

    def named(self, name: str) -> Process:
        """Return the process called *name*."""
        return next(process for process in self._all() if process.name == name)

    @asynccontextmanager
    async def replacing(self, names: Collection[str]) -> AsyncIterator[None]:
        """Start a second process beside each of these; when the block ends the first ones stop.

        Raises:
            ProcessFailedError: In an ExceptionGroup: a second one does not serve; the first ones
                go on.
        """
        chosen = [process for process in self._all() if process.name in names]
        try:
            await _all_at_once(process.start_successor() for process in chosen)
            yield
        except BaseException:
            await _all_at_once(process.stop_successor() for process in chosen)
            raise
        await _all_at_once(process.hand_over() for process in chosen)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Start processes again that die, for as long as the block lasts.

        Raises:
            ProcessFailedError: In an ExceptionGroup: one died that cannot be replaced, or again
                and again.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._keep(process)) for process in self._all()]
            yield
            for task in tasks:
                task.cancel()

    async def stop(self) -> None:
        """Stop all processes, the last group first."""
        for processes in reversed(self._groups):
            await _all_at_once(process.stop() for process in processes)

    def _all(self) -> list[Process]:
        return list(chain(*self._groups))

    async def _keep(self, process: Process) -> None:
        clock, deaths = asyncio.get_running_loop().time, 0
        while True:
            began = clock()
            end = await (process.wait() if deaths == 0 else _run_again(process))
            if not process.replaceable:
                raise ProcessFailedError(f"{end}; the embedded cluster is lost")
            deaths = 1 if clock() - began > STEADY_SECONDS else deaths + 1
            if deaths > DEATHS:
                raise ProcessFailedError(f"{end}; it died {deaths} times in a row")
            pause = RESTART_PAUSE * 2 ** (deaths - 1)
            self._report(f"{end}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)


async def _all_at_once(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)


async def _run_again(process: Process) -> str:
    try:
        await process.start()
    except ProcessFailedError as error:
        return str(error)
    return await process.wait()
