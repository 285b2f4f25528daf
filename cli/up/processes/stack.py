"""Which processes `moorage up` starts, with which options, and where they are found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.config.extender import extender_weight
from cli.shared.files import write_files
from cli.up.kubeconfig import kubeconfig
from cli.up.processes.process import Process, Processes, free_ports
from sandbox import SHIPPED

HOST = "127.0.0.1"

LOG = "--log-format=text"

SCATTERED = ("--min-shard-time=0s",)
"""Who runs several filters looks what a plugin does with a part of the nodes, however few."""

OF_CYCLES = {"filterVerb", "prioritizeVerb", "preemptVerb", "weight"}
"""Fields of an extender's entry that one for binds alone does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the user chose.

    Attributes:
        directory: Where logs and the kubeconfig go.
        kubeconfig: A real cluster instead of the embedded one.
        kubeconfig_out: Where the embedded cluster's kubeconfig goes, too.
        config: The policy file.
        profiles: The schedulerNames that the policy serves.
        plugins: Files and folders with plugins.
        score_scale: The highest score that the policy sends.
        scorers: How many scorer replicas to run.
        filters: How many filter replicas to run.
        gateway_options: More options of the gateway.
        extender_port: The gateway's port for kube-scheduler, 0 for a free one.
        admin_port: The gateway's admin port, 0 for a free one.
    """

    directory: Path
    kubeconfig: Path | None
    config: Path | None
    profiles: Sequence[str]
    plugins: Sequence[Path]
    score_scale: int = 100
    kubeconfig_out: Path | None = None
    scorers: int = 1
    filters: int = 1
    gateway_options: Sequence[str] = ()
    extender_port: int = 0
    admin_port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where everything listens; gRPC services as host:port, the others as URLs."""

    extender: str
    admin: str
    scheduler: str
    services: Mapping[str, str]
    api: str
    kubeconfig: Path


async def start_stack(options: StackOptions, processes: Processes) -> Addresses:
    """Start everything at once: what comes up first waits for the others.

    Raises:
        ProcessFailedError: In an ExceptionGroup: a process does not serve.
    """
    addresses = _choose_addresses(options)
    services = [_service(name, options, addresses) for name in addresses.services]
    groups = [[*services], [_gateway(options, addresses)]]
    if addresses.api:
        # Before the API server runs, so that nobody has to wait for the file.
        text = yaml.safe_dump(kubeconfig(addresses.api, addresses.admin), sort_keys=False)
        files = filter(None, (addresses.kubeconfig, options.kubeconfig_out))
        write_files(dict.fromkeys(files, text))
        groups = [[_api_server(options, addresses)], *groups, [_scheduler(options, addresses)]]
    await processes.start(*groups)
    return addresses


def _choose_addresses(options: StackOptions) -> Addresses:
    filters = [f"filter-{i + 1}" for i in range(options.filters)] if options.filters > 1 else []
    scorers = [f"scorer-{i + 1}" for i in range(options.scorers)]
    names = [*(filters or ["filter"]), *scorers, "binder"]
    extender, admin, scheduler, api, *ports = free_ports(4 + len(names))
    return Addresses(
        extender=f"http://{HOST}:{options.extender_port or extender}",
        admin=f"http://{HOST}:{options.admin_port or admin}",
        scheduler="" if options.kubeconfig else f"http://{HOST}:{scheduler}",
        services={name: f"{HOST}:{port}" for name, port in zip(names, ports, strict=True)},
        api="" if options.kubeconfig else f"http://{HOST}:{api}",
        kubeconfig=options.kubeconfig or options.directory / "kubeconfig",
    )


def _api_server(options: StackOptions, addresses: Addresses) -> Process:
    return Process(
        name="api-server",
        module="sandbox.apiserver",
        options=[
            f"--port={_port(addresses.api)}",
            "--run-bound-pods",
            "--run-controllers",
            LOG,
        ],
        log=options.directory / "api-server.log",
        replaceable=False,
    )


def _scheduler(options: StackOptions, addresses: Addresses) -> Process:
    """Return the stand-in for kube-scheduler.

    As in a cluster with a second scheduler, another one without extenders serves default-scheduler.
    """
    file = options.directory / "kube-scheduler-config.yaml"
    write_files({file: scheduler_config(options.profiles, options.score_scale)})
    return Process(
        name="kube-scheduler",
        module="sandbox.scheduler",
        options=[
            f"--config={file}",
            f"--api-server={addresses.api}",
            f"--extender-url={addresses.extender}",
            f"--decisions-port={_port(addresses.scheduler)}",
            "--default-scheduler",
            LOG,
        ],
        log=options.directory / "kube-scheduler.log",
    )


def scheduler_config(profiles: Sequence[str], score_scale: int) -> str:
    """Return the stand-in's configuration: the shipped one, for these profiles.

    Binds have an entry of their own, as `moorage config extender` prints it. The other one has
    every verb, since plugins may be loaded later, and the weight that is printed.
    """
    document = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    (cycle,) = document["extenders"]
    cycle["weight"] = extender_weight(score_scale)
    binds = {key: value for key, value in cycle.items() if key not in OF_CYCLES}
    document["extenders"].append({**binds, "bindVerb": "bind", "ignorable": False})
    document["profiles"] = [{"schedulerName": name} for name in profiles]
    return str(yaml.safe_dump(document))


def _service(name: str, options: StackOptions, addresses: Addresses) -> Process:
    service = name.partition("-")[0]
    more = [f"--plugin={path.resolve()}" for path in options.plugins]
    if service == "binder":
        more.append(f"--kubeconfig={addresses.kubeconfig}")
    # Nobody needs its admin port to be the same after a restart.
    address = [f"--host={HOST}", f"--port={_port(addresses.services[name])}", "--share-port"]
    return Process(
        name=name,
        module=f"services.{service}",
        options=[*address, *_admin(0), LOG, *more],
        log=options.directory / f"{name}.log",
    )


def _gateway(options: StackOptions, addresses: Addresses) -> Process:
    more = [f"--config={options.config}"] if options.config else []
    more += [f"--{name.partition('-')[0]}={place}" for name, place in addresses.services.items()]
    if options.filters > 1:
        more += SCATTERED
    return Process(
        name="gateway",
        module="gateway",
        options=[
            f"--extender-host={HOST}",
            f"--extender-port={_port(addresses.extender)}",
            f"--kubeconfig={addresses.kubeconfig}",
            LOG,
            *_admin(_port(addresses.admin)),
            *more,
            *options.gateway_options,
        ],
        log=options.directory / "gateway.log",
    )


def _admin(port: int) -> list[str]:
    return [
        f"--admin-host={HOST}",
        f"--admin-port={port}",
        "--shutdown-delay=0s",
        "--shutdown-grace=2s",
    ]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
