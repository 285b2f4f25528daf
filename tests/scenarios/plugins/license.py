"""Rejects by a file that nobody but this plugin sees."""

import asyncio
from pathlib import Path

from moorage import Arguments, FilterPlugin, Node, Pod, Rejection


class License(FilterPlugin):
    """Rejects all nodes until a file is there, and has the pods tried again then."""

    class Args(Arguments):
        """Where the file is."""

        file: str

    async def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        self._watching.cancel()

    async def _watch(self) -> None:
        was_there = False
        while True:
            is_there = self._is_there()
            if is_there and not was_there:
                self.retry_rejected("there is a license")
            was_there = is_there
            await asyncio.sleep(0.05)

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None if self._is_there() else Rejection("no license")

    def _is_there(self) -> bool:
        return Path(self.args.file).exists()
