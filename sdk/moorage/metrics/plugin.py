"""What plugins that measure nodes share."""

from typing import Protocol

from moorage.plugin import Plugin


class Source(Protocol):
    """Something that asks in the background, such as a `PrometheusSource`."""

    async def start(self) -> None:
        """Begin to ask."""

    async def stop(self) -> None:
        """Ask no more."""


class MeasuringPlugin(Plugin):
    """A plugin whose source lives as long as it does; to be mixed in before the kind of plugin.

    Attributes:
        source: To be set by `__init__`; None if there is nothing to ask.
    """

    source: Source | None

    async def start(self) -> None:
        """Begin to ask."""
        if self.source:
            await self.source.start()

    async def stop(self) -> None:
        """Ask no more."""
        if self.source:
            await self.source.stop()
