"""The policies that gateways send with their binds, each running while it is used.

Called by `cycle`. A policy comes with every call, so that neither the number of binders
matters nor who started first; it is read once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog

from moorage.errors import ConfigurationError
from moorage_host.plugins import PluginHost
from moorage_host.plugins.host import Policy
from moorage_host.plugins.registry import Registry

_log = structlog.get_logger()


class PolicyText(msgspec.Struct, frozen=True):
    """An effective policy as it came: its revision, and its JSON."""

    revision: str
    content: bytes


class PolicyUnusableError(Exception):
    """A policy cannot be used here; the message says why."""


class Policies:
    """Runs the policies that binds bring along.

    Attributes:
        plugins: Who runs them.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        retry_interval: float = 5.0,
        count_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run plugins of *registry*; *count_failure* is called when the work of one fails.

        A policy that cannot be used is not tried again for *retry_interval* seconds: its plugins
        may take long to fail.
        """
        self.plugins = PluginHost(registry, count_failure=count_failure)
        self._retry_interval = retry_interval
        self._turn = asyncio.Lock()
        # The revision that was refused last, until when it stays so, and why.
        self._refused = ("", 0.0, "")

    @asynccontextmanager
    async def using(self, text: PolicyText) -> AsyncIterator[Policy]:
        """Keep the plugins of a policy running inside the block.

        Raises:
            PolicyRefusedError: It names a plugin that is not here, arguments that one does not
                take, or one that does not start.
        """
        async with self._turn:
            revision, until, problem = self._refused
            if revision == text.revision and time.monotonic() < until:
                raise PolicyUnusableError(problem)
            try:
                policy = await self.plugins.use(text.revision, text.content)
            except (ConfigurationError, msgspec.DecodeError) as error:
                self._refused = text.revision, time.monotonic() + self._retry_interval, str(error)
                _log.warning("The policy of a bind cannot be used", error=str(error))
                raise PolicyUnusableError(str(error)) from error
        try:
            yield policy
        finally:
            await self.plugins.release(policy)
