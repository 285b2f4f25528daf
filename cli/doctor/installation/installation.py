"""An installation: all that was read of it at one time; what cannot be read stops nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from cli.doctor.installation.objects import NotReadError, ReadObjects, read_objects, read_server
from cli.doctor.installation.running_scheduler import read_running
from cli.doctor.installation.schedulers import FoundScheduler, find_schedulers, scheduler_pods
from cli.shared.gateway.client import Gateway, connected, connected_to_pod, unreached
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.metrics import Metrics
from cli.shared.gateway.options import GatewayOptions
from cli.shared.gateway.pods import Object, admin_port, is_active, services_in
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, KubeUnreachableError, connect
from moorage_host.kube_scheduler import ExtenderConfig, KubeSchedulerConfiguration
from moorage_host.tls.identities import service_identity

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

AT_ONCE = 4
"""Processes that are asked at the same time."""

MOST = 60
"""Processes that are asked in all."""

METRICS = (
    "moorage_build_info",
    "moorage_extender_hidden_failures_total",
    "moorage_extender_requests_total",
    "moorage_neutral_scores_total",
    "moorage_plugin_failures_total",
)
"""The metrics that checks look at; reading all takes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """What the admin port of a process of Moorage answers.

    Attributes:
        service: What it runs, such as "filter".
        problems: Why it is not ready, by the name of the check of its `/readyz`.
        notes: What it notes although it is ready, by name.
        metrics: What it has counted.
    """

    service: str
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=partial(Metrics, "", METRICS))


Processes = Mapping[str, ProcessStatus | NotReadError]
"""The processes by the name of the pod and what runs in it: "filter-7d9c (filter)"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayReport:
    """What the gateway that decides reports.

    Attributes:
        place: Where it is, for people.
        pod: NAMESPACE/POD; "" if it was reached by its address.
        is_secured: Whether its ports have certificates.
        replicas: Its `GET /replicas`: itself, its callers, its replicas.
        policy: Its `GET /policy`.
        process: Its probes and metrics.
    """

    place: str
    pod: str
    is_secured: bool
    replicas: Object
    policy: Object
    process: ProcessStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundExtender:
    """An extender of a kube-scheduler.

    Attributes:
        place: Where it is, for people: "extenders[0] in ConfigMap ...".
        scheduler: Whose it is.
        extender: The entry.
    """

    place: str
    scheduler: FoundScheduler
    extender: ExtenderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installation of Moorage.

    Attributes:
        namespace: Where its processes run.
        now: When it was read, by the clock of the API server.
        objects: The objects of the cluster.
        version: The version of the API server.
        schedulers: The kube-schedulers with a configuration of their own.
        gateway: What the gateway that decides reports.
        processes: What each process reports.
    """

    namespace: str
    now: datetime
    objects: ReadObjects
    version: str
    schedulers: Sequence[FoundScheduler] = ()
    gateway: GatewayReport | NotReadError
    processes: Processes = field(default_factory=dict)

    @property
    def report(self) -> GatewayReport:
        """What the gateway reports.

        Raises:
            NotReadError: It does not answer.
        """
        if isinstance(self.gateway, NotReadError):
            raise NotReadError("the gateway does not answer")
        return self.gateway

    @property
    def replicas(self) -> Object:
        """What the gateway answers to `GET /replicas`."""
        return self.report.replicas

    @property
    def policy(self) -> Object:
        """What the gateway answers to `GET /policy`."""
        return self.report.policy

    @property
    def configurations(self) -> Sequence[tuple[FoundScheduler, KubeSchedulerConfiguration]]:
        """The kube-schedulers that ask an extender, with their configurations.

        Raises:
            NotReadError: There is none, or its configuration could not be read.
        """
        read = [(each, each.configuration) for each in self.schedulers]
        found = [
            (scheduler, configuration)
            for scheduler, configuration in read
            if not isinstance(configuration, NotReadError) and configuration.extenders
        ]
        if found:
            return found
        unread = [str(each) for _, each in read if isinstance(each, NotReadError)]
        raise NotReadError(
            "; ".join(unread)
            or "no kube-scheduler with an extender was found: give --config FILE; a cluster of "
            "`moorage up` has none"
        )

    @property
    def entries(self) -> Sequence[FoundExtender]:
        """The extenders of kube-schedulers; those of others are left out where ours are known.

        Raises:
            NotReadError: There is none, or no configuration could be read.
        """
        every = [
            FoundExtender(
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


async def read_installation(options: GatewayOptions, config: Path | None) -> Installation:
    """Read everything that the options lead to.

    Args:
        options: Where the gateway and the cluster are.
        config: A configuration of kube-scheduler on disk.

    Raises:
        ConfigurationError: A file or an option cannot be used.
        KubeError: The API server cannot be reached, or refuses to answer.
    """
    namespace = options.gateway.partition("/")[0]
    cluster = await connect(options.kubeconfig, context=options.context or None)
    try:
        try:
            version, now = await read_server(cluster)
        except KubeUnreachableError as error:
            raise unreached(error, options) from error
        try:
            gateway: GatewayReport | NotReadError = await read_gateway(options, cluster)
        except (GatewayError, TimeoutError) as error:
            gateway = NotReadError(str(error))
        objects = await read_objects(cluster, namespace)
        processes = await read_processes(options, cluster, objects.read("pods"))
        running = await read_running(cluster, scheduler_pods(objects))
        return Installation(
            namespace=namespace,
            now=now,
            objects=objects,
            version=version,
            schedulers=find_schedulers(objects, config, running),
            gateway=gateway,
            processes=processes,
        )
    finally:
        await cluster.close()


async def read_gateway(options: GatewayOptions, client: KubeClient) -> GatewayReport:
    """Ask the gateway; raises GatewayError if it does not answer."""
    async with connected(options, client) as gateway:
        pod = gateway.pod
        return GatewayReport(
            place=gateway.place,
            pod=str(pod or ""),
            is_secured=pod.is_secured if pod else options.admin.startswith("https:"),
            replicas=await gateway.get("/replicas"),
            policy=await gateway.get("/policy"),
            process=await read_process(gateway, "gateway"),
        )


async def read_processes(
    options: GatewayOptions, client: KubeClient, pods: Sequence[Object]
) -> Processes:
    """Ask each process that runs."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(pod: Object, service: str, container: Object) -> ProcessStatus | NotReadError:
        where = admin_port(pod, container)
        if where is None:
            return NotReadError(f"pod {pod['metadata']['name']} names no port admin")
        try:
            async with (
                gate,
                connected_to_pod(options, client, where, service_identity(service)) as found,
            ):
                return await read_process(found, service)
        except (GatewayError, ConfigurationError, KubeError, TimeoutError) as error:
            return NotReadError(f"pod {where}: {error}")

    running = [
        (pod, service, container)
        for pod in pods
        if is_active(pod)
        for service, container in services_in(pod)
    ][:MOST]
    answers = await asyncio.gather(*(one(*each) for each in running))
    names = [f"{pod['metadata']['name']} ({service})" for pod, service, _ in running]
    return dict(zip(names, answers, strict=True))


async def read_process(port: Gateway, service: str) -> ProcessStatus:
    """Ask an admin port for probes and metrics; raises GatewayError if it does not answer."""
    text, metrics = await port.text("/readyz", statuses=(200, 503)), await port.text("/metrics")
    try:
        ready = msgspec.json.decode(text)
        return ProcessStatus(
            service=service,
            problems=_reasons(ready.get("checks"), "reason"),
            notes=_reasons(ready.get("notes"), "note"),
            metrics=Metrics(metrics, METRICS),
        )
    except ValueError as error:  # msgspec.DecodeError too
        text = f"{port.place} answers something else than a process of Moorage"
        raise GatewayError(text) from error


def _reasons(listed: Any, key: str) -> Mapping[str, str]:
    return {each["name"]: each[key] for each in listed or () if each.get(key)}
