"""Reads what processes report: probes and metrics of each, and what the gateway knows of others."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from cli.doctor.installation.objects import Missing
from cli.shared.gateway.client import Gateway, connected_to_pod
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.metrics import Change, Sample, sample
from cli.shared.gateway.options import GatewayOptions
from cli.shared.gateway.pods import Object, admin_port, is_active, services_in
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError
from moorage_host.tls.identities import service_identity

AT_ONCE = 4
"""Processes that are asked at the same time."""

MOST = 60
"""Processes that are asked in all."""

METRICS = (
    "moorage_build_info",
    "moorage_extender_hidden_failures_total",
    "moorage_extender_requests_total",
    "moorage_http_refused_total",
    "moorage_neutral_scores_total",
    "moorage_plugin_failures_total",
    "moorage_rounded_scores_total",
)
"""The metrics that checks look at; reading all takes long."""


def since_start(text: str) -> Change:
    """Return what the metrics of a process have counted since it started.

    Raises:
        ValueError: It is not in Prometheus' text format.
    """
    return Change(Sample(time=0.0, values={}), sample(text, 0.0, METRICS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
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
    metrics: Change = field(default_factory=partial(since_start, ""))


Processes = Mapping[str, Process | Missing]
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
        skew: Its clock minus the clock of this machine, in seconds.
    """

    place: str
    pod: str
    is_secured: bool
    replicas: Object | Missing
    policy: Object | Missing
    process: Process | Missing
    skew: float | Missing


async def read_gateway(gateway: Gateway, *, pod: str, is_secured: bool) -> GatewayReport | Missing:
    """Ask the gateway; what it does not answer is missing, with the reason."""
    before = time.time()
    replicas = await _asked(gateway, "/replicas")
    middle = (before + time.time()) / 2
    policy, process = await _asked(gateway, "/policy"), await read_process(gateway, "gateway")
    if isinstance(replicas, Missing):
        if isinstance(policy, Missing) and isinstance(process, Missing):
            return replicas
        skew: float | Missing = replicas
    else:
        skew = replicas["gateway"]["time"] - middle
    return GatewayReport(
        place=gateway.place,
        pod=pod,
        is_secured=is_secured,
        replicas=replicas,
        policy=policy,
        process=process,
        skew=skew,
    )


async def read_processes(
    options: GatewayOptions, client: KubeClient, pods: Sequence[Object]
) -> Processes:
    """Ask each process that runs."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(pod: Object, service: str, container: Object) -> Process | Missing:
        where = admin_port(pod, container)
        if where is None:
            return Missing(f"pod {pod['metadata']['name']} names no port admin")
        try:
            async with (
                gate,
                connected_to_pod(options, client, where, service_identity(service)) as found,
            ):
                return await read_process(found, service)
        except (GatewayError, ConfigurationError, KubeError, TimeoutError) as error:
            return Missing(f"pod {where}: {error}")

    running = [
        (pod, service, container)
        for pod in pods
        if is_active(pod)
        for service, container in services_in(pod)
    ][:MOST]
    answers = await asyncio.gather(*(one(*each) for each in running))
    names = [f"{pod['metadata']['name']} ({service})" for pod, service, _ in running]
    return dict(zip(names, answers, strict=True))


async def read_process(port: Gateway, service: str) -> Process | Missing:
    """Ask an admin port for probes and metrics."""
    try:
        ready = msgspec.json.decode(await port.text("/readyz", statuses=(200, 503)))
        metrics = since_start(await port.text("/metrics"))
    except GatewayError as error:
        return Missing(str(error))
    except ValueError:  # msgspec.DecodeError too
        return Missing(f"{port.place} answers something else than a process of Moorage")
    return Process(
        service=service,
        problems=_reasons(ready.get("checks"), "reason"),
        notes=_reasons(ready.get("notes"), "note"),
        metrics=metrics,
    )


async def _asked(gateway: Gateway, path: str) -> Object | Missing:
    try:
        found: Object = await gateway.get(path)
    except GatewayError as error:
        return Missing(str(error))
    return found


def _reasons(listed: Any, key: str) -> Mapping[str, str]:
    return {each["name"]: each[key] for each in listed or () if each.get(key)}
