"""Runs what is asynchronous for tests that are not, and keeps its failures short."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import closing
from typing import Any, TypeVar

from moorage.errors import PluginFailedError

T = TypeVar("T")


def complete(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end.

    Raises:
        RuntimeError: It is called from a coroutine.
    """
    __tracebackhide__ = True
    with closing(coroutine):
        if _is_in_loop():
            raise RuntimeError(
                "the functions of moorage.testing are synchronous: call them from a test that is "
                "not async, or by asyncio.to_thread"
            )
        try:
            return asyncio.run(coroutine)
        except PluginFailedError as error:
            failure = _shortened(error)
    raise failure


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _shortened(error: PluginFailedError) -> PluginFailedError:
    """Remove the frames that are not the plugin's, so that pytest shows the test and the plugin."""
    if (cause := error.__cause__) is not None:
        place = cause.__traceback__
        while place and place.tb_next and _is_ours(place.tb_frame.f_globals):
            place = place.tb_next
        cause.__traceback__ = place
    return error.with_traceback(None)


def _is_ours(variables: Mapping[str, Any]) -> bool:
    return str(variables.get("__name__", "")).partition(".")[0] in ("moorage", "asyncio")
