"""Reads an installation; what cannot be read is missing, with the reason, and stops nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cli.doctor.installation.certificates import read_identities
from cli.doctor.installation.gateway import GatewayReport, read_gateway
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, NotReadError
from cli.doctor.installation.objects import (
    no_objects,
    read_api_server,
    read_objects,
)
from cli.doctor.installation.processes import read_processes
from cli.doctor.installation.release import read_release
from cli.doctor.installation.schedulers import find_schedulers
from cli.shared.gateway.client import connected
from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.options import GatewayOptions
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, connect


async def read_installation(
    options: GatewayOptions, config: Path | None, plugins: Sequence[Path], layout: str = ""
) -> Installation:
    """Read everything that the options lead to.

    Args:
        options: Where the gateway and the cluster are.
        config: A configuration of kube-scheduler on disk.
        plugins: Files and folders with plugins, for the resources that they declare.
        layout: The layout of the release that is installed; "" is the one that is likely.

    Raises:
        ConfigurationError: A file or an option cannot be used.
        GatewayError: Neither the gateway nor a cluster answers.
        KubeError: There is no --admin, and the API server cannot be reached.
    """
    namespace = options.gateway.partition("/")[0]
    async with _cluster(options) as client:
        if isinstance(client, Missing):
            reachable, objects = None, no_objects(client.reason)
        else:
            reachable, objects = client, await read_objects(client, namespace)
        gateway = await _gateway(options, reachable)
        schedulers = find_schedulers(objects, config)
        if reachable is None and isinstance(gateway, Missing):
            raise GatewayError(gateway.reason)
        read = Installation(
            namespace=namespace,
            now=datetime.now(UTC),
            objects=objects,
            api_server=client if isinstance(client, Missing) else await read_api_server(client),
            schedulers=schedulers,
            gateway=gateway,
            release=Missing("there is no cluster"),
            managed_resources=_managed_resources(plugins),
        )
        return await _with_details(read, options, reachable, layout)


async def _with_details(
    read: Installation, options: GatewayOptions, client: KubeClient | None, layout: str
) -> Installation:
    """Read what depends on the first things that were read."""
    try:
        pods = read.objects.of("pods")
    except NotReadError:
        pods = ()
    identities = await read_identities(client, pods, read.schedulers)
    if client is None:
        return replace(read, identities=identities)
    return replace(
        read,
        identities=identities,
        processes=await read_processes(options, client, pods),
        release=await read_release(client, read.objects, read.namespace, layout),
    )


@asynccontextmanager
async def _cluster(options: GatewayOptions) -> AsyncIterator[KubeClient | Missing]:
    try:
        client = await connect(options.kubeconfig)
        (await client.request("GET", "/version", timeout=5.0)).check()
    except (ConfigurationError, KubeError, TimeoutError) as error:
        if not options.admin:
            raise
        yield Missing(f"there is no cluster: {error}")
        return
    try:
        yield client
    finally:
        await client.close()


async def _gateway(options: GatewayOptions, client: KubeClient | None) -> GatewayReport | Missing:
    try:
        async with connected(options, client) as gateway:
            pod = gateway.pod
            is_secured = pod.is_secured if pod else options.admin.startswith("https:")
            report = await read_gateway(gateway, pod=str(pod or ""), is_secured=is_secured)
            answers = (report.replicas, report.policy, report.process)
            is_silent = all(isinstance(each, Missing) for each in answers)
            return report.replicas if is_silent and isinstance(report.replicas, Missing) else report
    except (GatewayError, TimeoutError) as error:
        return Missing(str(error))


def _managed_resources(plugins: Sequence[Path]) -> Mapping[str, tuple[str, ...]]:
    from cli.config.policies import load_registries

    found = {}
    for registry in load_registries(plugins).values():
        for name in registry:
            if (registered := registry.get(name)) is not None:
                found[name] = tuple(registered.kind.managed_resources)
    return found
