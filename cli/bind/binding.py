"""Binds one pod as the binder does, without a scheduler."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from cli.shared.given import NAME
from moorage import Binding
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError, connect
from services.binder.binding.attempt import Attempt
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import Outcome
from services.binder.cluster import Cluster
from services.binder.metrics import BindMetrics

REQUEST_SECONDS = 5.0
"""How long one request to the API server may take."""


async def bind_pod(
    namespace: str, name: str, node: str, kubeconfig: Path | None, context: str, timeout: float
) -> str:
    """Bind a pod; return the line for the user.

    Args:
        namespace: The pod's namespace.
        name: Its name.
        node: The name of the node.
        kubeconfig: How to reach the API server; None takes what `moorage_host.kube.connect` finds.
        context: A context of the kubeconfig; "" is the current one.
        timeout: How long to try, in seconds.

    Raises:
        ConfigurationError: The words are wrong, or there is no such pod or node.
        BindError: The pod may not be bound, or it is not known whether it was.
        KubeUnreachableError: The API server does not answer.
    """
    if not re.fullmatch(NAME, node):
        raise ConfigurationError(f"{node!r} is no name of a node")
    binding = Binding(namespace=namespace, name=name, uid="", node=node)
    deadline = time.monotonic() + timeout
    async with _client(kubeconfig, context) as client:
        await _check_node(client, node)
        cluster = Cluster(client, request_timeout=REQUEST_SECONDS)
        try:
            found = await cluster.read_pod(binding, timeout=REQUEST_SECONDS)
        except KubeStatusError as error:
            if error.status != 404:
                raise
            raise ConfigurationError(f"there is no {binding}") from error
        # With the uid, the bind is refused if somebody replaces the pod in the meantime.
        binding = replace(binding, uid=found.uid)
        attempt = Attempt(
            cluster,
            binding,
            epoch=0,
            deadline=deadline,
            limits=BindLimits(),
            metrics=BindMetrics(),  # which nobody reads here
        )
        outcome = await attempt.run(look_first=True)
    already = " already" if outcome is Outcome.ALREADY_BOUND else ""
    return f"{binding} is bound to node {node}{already}"


@asynccontextmanager
async def _client(kubeconfig: Path | None, context: str) -> AsyncIterator[KubeClient]:
    client = await connect(kubeconfig, context=context or None)
    try:
        yield client
    except TimeoutError as error:
        message = f"the API server at {client.host} does not answer in time"
        raise KubeUnreachableError(message) from error
    finally:
        await client.close()


async def _check_node(client: KubeClient, node: str) -> None:
    """Refuse a node that does not exist: the API server itself would bind to it."""
    try:
        answer = await client.request("GET", f"/api/v1/nodes/{node}", timeout=REQUEST_SECONDS)
        answer.check()
    except KubeStatusError as error:
        if error.status != 404:
            raise
        raise ConfigurationError(f"there is no node {node}: the pod would never run") from error
