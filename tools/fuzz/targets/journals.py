"""Segment files of journals: read to their end, or refused with file and offset."""

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from gateway.journal.segments import MAGIC, JournalError, to_frame
from gateway.whatif.timeline import Timeline
from moorage.v1 import journal_pb2 as pb
from tools.fuzz.targets.target import Target, mutated_messages, require, unpacked


class Journals(Target):
    """A series of records, or the bytes of a file if they begin like one."""

    name = "journals"
    share = 10
    seconds = 1e-3
    tokens = (MAGIC.decode(), '{"metadata":{"name":"n1"', '"uid":"u"', '"spec":{')
    longest = 4096

    async def open(self, stack: AsyncExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._file = Path(folder) / "case.journal"

    async def case(self, data: bytes) -> None:
        is_file = data.startswith(MAGIC)
        self._file.write_bytes(data if is_file else MAGIC + b"".join(map(to_frame, unpacked(data))))
        timeline, cycles = Timeline(), 0
        try:
            async for recorded in timeline.cycles([self._file]):
                cycles += 1
                outcome = recorded.outcome
                require(len(outcome.codes) == len(outcome.rows), "codes do not match the nodes")
                require(len(outcome.totals) == len(outcome.scored), "totals do not match")
                require(
                    timeline.replica.generation >= 1 or recorded.cycle.generation == 0,
                    "a cycle without its state",
                )
        except JournalError as error:
            require(str(self._file) in str(error), "an error without its file", error)

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        if data.startswith(MAGIC):
            return None
        return mutated_messages(data, random, pb.JournalRecord)
