"""An installation: all that was read of it at one time; what cannot be read stops nothing."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from cli.doctor.installation.objects import (
    ApiServer,
    Missing,
    NotReadError,
    Objects,
    known,
    no_objects,
    read_api_server,
    read_objects,
)
from cli.doctor.installation.processes import (
    GatewayReport,
    Processes,
    read_gateway,
    read_processes,
)
from cli.doctor.installation.release import Release, read_release
from cli.doctor.installation.schedulers import Scheduler, find_schedulers
from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.gateway.pods import Object
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, connect
from sandbox.scheduler.config import Configuration, ExtenderConfig

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An extender of a kube-scheduler.

    Attributes:
        place: Where it is, for people: "extenders[0] in ConfigMap ...".
        scheduler: Whose it is.
        extender: The entry.
    """

    place: str
    scheduler: Scheduler
    extender: ExtenderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installation of Moorage.

    Attributes:
        namespace: Where its processes run.
        now: The time of this machine at which it was read.
        objects: The objects of the cluster.
        api_server: The API server.
        schedulers: The kube-schedulers with a configuration of their own.
        gateway: What the gateway that decides reports.
        processes: What each process reports.
        release: What the release has beside what the cluster has.
    """

    namespace: str
    now: datetime
    objects: Objects
    api_server: ApiServer | Missing
    schedulers: Sequence[Scheduler] = ()
    gateway: GatewayReport | Missing
    processes: Processes = field(default_factory=dict)
    release: Release | Missing

    @property
    def report(self) -> GatewayReport:
        """What the gateway reports.

        Raises:
            NotReadError: It does not answer.
        """
        if isinstance(self.gateway, Missing):
            raise NotReadError("the gateway does not answer")
        return self.gateway

    @property
    def replicas(self) -> Object:
        """What the gateway answers to `GET /replicas`."""
        return known(self.report.replicas)

    @property
    def policy(self) -> Object:
        """What the gateway answers to `GET /policy`."""
        return known(self.report.policy)

    @property
    def configurations(self) -> Sequence[tuple[Scheduler, Configuration]]:
        """The kube-schedulers that ask an extender, with their configurations.

        Raises:
            NotReadError: There is none, or its configuration could not be read.
        """
        read = [(each, each.configuration) for each in self.schedulers]
        found = [
            (scheduler, configuration)
            for scheduler, configuration in read
            if not isinstance(configuration, Missing) and configuration.extenders
        ]
        if found:
            return found
        unread = [each.reason for _, each in read if isinstance(each, Missing)]
        raise NotReadError(
            "; ".join(unread) or "no kube-scheduler with an extender was found: give --config FILE"
        )

    @property
    def entries(self) -> Sequence[Entry]:
        """The extenders of kube-schedulers; those of others are left out where ours are known.

        Raises:
            NotReadError: There is none, or no configuration could be read.
        """
        every = [
            Entry(
                place=f"extenders[{index}] in {scheduler.source}",
                scheduler=scheduler,
                extender=extender,
            )
            for scheduler, configuration in self.configurations
            for index, extender in enumerate(configuration.extenders)
        ]
        return [each for each in every if self._may_be_ours(each.extender)] or every

    @property
    def scheduler_names(self) -> Sequence[str]:
        """The profiles of the kube-schedulers that ask an extender.

        Raises:
            NotReadError: No configuration could be read.
        """
        return [name for _, found in self.configurations for name in found.scheduler_names]

    def _may_be_ours(self, extender: ExtenderConfig) -> bool:
        """Whether an address can be that of the gateway."""
        url, tls = extender.url_prefix, extender.tls_config
        addresses = (each["spec"].get("clusterIP") for each in self.objects.read("services"))
        hosts = (*LOOPBACK, *(each or "None" for each in addresses))
        words = f"{url} {tls.server_name if tls else ''}"
        return "moorage" in words or "gateway" in words or any(f"//{host}" in url for host in hosts)


async def read_installation(
    options: GatewayOptions, config: Path | None, layout: str = ""
) -> Installation:
    """Read everything that the options lead to.

    Args:
        options: Where the gateway and the cluster are.
        config: A configuration of kube-scheduler on disk.
        layout: The layout of the release that is installed; "" is the one that is likely.

    Raises:
        ConfigurationError: A file or an option cannot be used.
        GatewayError: Neither the gateway nor a cluster answers.
        KubeError: There is no --admin, and the API server cannot be reached.
    """
    namespace = options.gateway.partition("/")[0]
    async with _cluster(options) as (cluster, api_server):
        gateway = await _gateway(options, cluster)
        if cluster is None and isinstance(gateway, Missing):
            raise GatewayError(gateway.reason)
        absent = api_server if isinstance(api_server, Missing) else Missing("it was not read")
        objects = await read_objects(cluster, namespace) if cluster else no_objects(absent.reason)
        read = Installation(
            namespace=namespace,
            now=datetime.now(UTC),
            objects=objects,
            api_server=api_server,
            schedulers=find_schedulers(objects, config),
            gateway=gateway,
            release=absent,
        )
        if cluster is None:
            return read
        read = replace(read, processes=await read_processes(options, cluster, objects.read("pods")))
        if options.admin and not read.processes and not layout:  # as with `moorage up`
            return replace(read, release=Missing(f"no pod of Moorage is in {namespace}"))
        return replace(read, release=await read_release(cluster, objects, namespace, layout))


@asynccontextmanager
async def _cluster(
    options: GatewayOptions,
) -> AsyncIterator[tuple[KubeClient | None, ApiServer | Missing]]:
    try:
        client = await connect(options.kubeconfig, context=options.context or None)
        api_server = await read_api_server(client)
    except (ConfigurationError, KubeError, TimeoutError) as error:
        if not options.admin:
            raise
        yield None, Missing(f"there is no cluster: {error}")
        return
    try:
        yield client, api_server
    finally:
        await client.close()


async def _gateway(options: GatewayOptions, client: KubeClient | None) -> GatewayReport | Missing:
    try:
        async with connected(options, client) as gateway:
            pod = gateway.pod
            is_secured = pod.is_secured if pod else options.admin.startswith("https:")
            return await read_gateway(gateway, pod=str(pod or ""), is_secured=is_secured)
    except (GatewayError, TimeoutError) as error:
        return Missing(str(error))
