"""Binds pods: through the extender that offers it, or as the default binder does."""

from collections.abc import Sequence

import structlog

from moorage.models import Pod
from sandbox.scheduler.cluster.api import Api, ApiError
from sandbox.scheduler.extenders.answers import AnswerError, bind_answer
from sandbox.scheduler.extenders.client import Extender, ExtenderError
from sandbox.scheduler.extenders.requests import bind_body

_log = structlog.get_logger()


class BindError(Exception):
    """A pod was not bound, as far as the scheduler knows."""


class Binder:
    """Binds pods to the nodes chosen for them.

    Args:
        api: The API server, for pods that no extender binds.
        extenders: In the order in which they are asked.
    """

    def __init__(self, api: Api, extenders: Sequence[Extender]) -> None:
        self._api = api
        self._extenders = extenders

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod; an extender's answer is final unless it is ignorable.

        Raises:
            BindError: The extender or the API server refused, or did not answer.
        """
        for extender in self._extenders:
            if not extender.config.bind_verb or not extender.is_interested(pod):
                continue
            try:
                return await _ask(extender, pod, node)
            except BindError as error:
                if not extender.config.ignorable:
                    raise
                _log.info("extender skipped", extender=extender.name, error=str(error))
        try:
            await self._api.bind(pod, node)
        except ApiError as error:
            raise BindError(f'running Bind plugin "DefaultBinder": {error}') from error


async def _ask(extender: Extender, pod: Pod, node: str) -> None:
    try:
        error = bind_answer(await extender.call(extender.config.bind_verb, bind_body(pod, node)))
    except (ExtenderError, AnswerError) as problem:
        raise BindError(str(problem)) from problem
    if error:
        raise BindError(error)
