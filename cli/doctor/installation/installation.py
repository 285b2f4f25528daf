"""An installation: all that was read of it at one time; what cannot be read stops nothing."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from cli.doctor.installation.certificates import Identities, read_identities
from cli.doctor.installation.gateway import GatewayReport, Own, Policy, Replicas, read_gateway
from cli.doctor.installation.objects import (
    ApiServer,
    Missing,
    NotReadError,
    Object,
    Objects,
    known,
    no_objects,
    read_api_server,
    read_objects,
)
from cli.doctor.installation.pods import runs
from cli.doctor.installation.processes import Processes, read_processes
from cli.doctor.installation.release import Release, read_release
from cli.doctor.installation.schedulers import Scheduler, find_schedulers
from cli.shared.gateway.client import connected
from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.options import GatewayOptions
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, connect
from sandbox.scheduler.config import Configuration, ExtenderConfig


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
        identities: The certificates.
        release: What the release has beside what the cluster has.
        managed_resources: Those that plugins declare that are known here, by plugin.
    """

    namespace: str
    now: datetime
    objects: Objects
    api_server: ApiServer | Missing
    schedulers: Sequence[Scheduler] = ()
    gateway: GatewayReport | Missing
    processes: Processes = field(default_factory=dict)
    identities: Identities = field(default_factory=dict)
    release: Release | Missing
    managed_resources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
    def replicas(self) -> Replicas:
        """What the gateway reports of who takes part."""
        return known(self.report.replicas)

    @property
    def own(self) -> Own:
        """What the gateway reports of itself."""
        return self.replicas.gateway

    @property
    def policy(self) -> Policy:
        """What the gateway reports of the active policy."""
        return known(self.report.policy)

    @property
    def configurations(self) -> Sequence[tuple[Scheduler, Configuration]]:
        """The kube-schedulers that ask an extender, with their configurations.

        Raises:
            NotReadError: There is none, or its configuration could not be read.
        """
        found = [
            (scheduler, scheduler.configuration)
            for scheduler in self.schedulers
            if not isinstance(scheduler.configuration, Missing)
            and scheduler.configuration.extenders
        ]
        if found:
            return found
        unread = [
            each.configuration.reason
            for each in self.schedulers
            if isinstance(each.configuration, Missing)
        ]
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

    def pods(self, service: str) -> Iterator[Object]:
        """Yield the pods that run a service of Moorage.

        Raises:
            NotReadError: The pods could not be read.
        """
        return (pod for pod in self.objects.of("pods") if runs(pod, service))

    def _may_be_ours(self, extender: ExtenderConfig) -> bool:
        """Whether an address can be that of the gateway."""
        tls = extender.tls_config
        words = (extender.url_prefix, tls.server_name if tls else "")
        return any("moorage" in word or "gateway" in word for word in words) or any(
            f"//{host}" in extender.url_prefix for host in self._addresses()
        )

    def _addresses(self) -> Iterator[str]:
        yield from ("127.0.0.1", "localhost", "[::1]")
        try:
            for service in self.objects.of("services"):
                yield service["spec"].get("clusterIP") or "None"
        except NotReadError:
            return


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
