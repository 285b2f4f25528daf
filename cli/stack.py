"""Which processes `moorage up` starts, with which options, and where they are found."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.processes import Process, Processes, free_ports

SCHEDULER_CONFIG = (
    Path(__file__).resolve().parents[1] / "deploy" / "scheduler" / "kube-scheduler-config.yaml"
)
"""What the real kube-scheduler is deployed with; the stand-in reads the same file."""

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the user chose.

    Attributes:
        directory: Where logs and the kubeconfig go.
        kubeconfig: A real cluster instead of the embedded one.
        config: The policy file.
        profiles: The schedulerNames that the policy serves.
        plugins: Files and folders with plugins.
        scorers: How many scorer replicas to run.
        extender_port: The gateway's port for kube-scheduler, 0 for a free one.
        admin_port: The gateway's admin port, 0 for a free one.
        api_port: The embedded API server's port, 0 for a free one.
    """

    directory: Path
    kubeconfig: Path | None
    config: Path | None
    profiles: Sequence[str]
    plugins: Sequence[Path]
    scorers: int = 1
    extender_port: int = 0
    admin_port: int = 0
    api_port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where everything listens; gRPC services as host:port, the others as URLs."""

    extender: str
    admin: str
    services: Mapping[str, str]
    api: str
    kubeconfig: Path


async def start_api_server(options: StackOptions, processes: Processes) -> str:
    """Start the embedded API server and return its URL."""
    (port,) = free_ports(1)
    server = Process(
        name="api-server",
        module="sandbox.apiserver",
        options=[
            f"--port={options.api_port or port}",
            f"--kubeconfig-out={kubeconfig_of(options)}",
            "--run-bound-pods",
            *_sandbox(),
        ],
        log=options.directory / "api-server.log",
        replaceable=False,
    )
    await processes.start(server)
    return server.served["api"]


async def start_services(options: StackOptions, processes: Processes, api: str) -> Addresses:
    """Start filter, scorers, binder and gateway."""
    names = ["filter", *(f"scorer-{i + 1}" for i in range(options.scorers)), "binder"]
    extender, admin, *ports = free_ports(2 + 2 * len(names))
    extender, admin = options.extender_port or extender, options.admin_port or admin
    places = dict(zip(names, ports, strict=False))
    admins = dict(zip(names, ports[len(names) :], strict=True))
    services = {name: f"{HOST}:{port}" for name, port in places.items()}
    await processes.start(
        *(_service(name, places[name], admins[name], options) for name in names),
        _gateway(options, services, extender, admin),
    )
    return Addresses(
        extender=f"http://{HOST}:{extender}",
        admin=f"http://{HOST}:{admin}",
        services=services,
        api=api,
        kubeconfig=kubeconfig_of(options),
    )


async def start_scheduler(
    options: StackOptions, processes: Processes, addresses: Addresses
) -> None:
    """Start the stand-in for kube-scheduler, with the configuration that is deployed."""
    config = yaml.safe_load(SCHEDULER_CONFIG.read_text())
    config["profiles"] = [{"schedulerName": name} for name in options.profiles]
    file = options.directory / "kube-scheduler-config.yaml"
    file.write_text(yaml.safe_dump(config))
    await processes.start(
        Process(
            name="kube-scheduler",
            module="sandbox.scheduler",
            options=[
                f"--config={file}",
                f"--api-server={addresses.api}",
                f"--extender-url={addresses.extender}",
                *_sandbox(),
            ],
            log=options.directory / "kube-scheduler.log",
        )
    )


def kubeconfig_of(options: StackOptions) -> Path:
    """Return the kubeconfig of the cluster in use."""
    return options.kubeconfig or options.directory / "kubeconfig"


def _service(name: str, port: int, admin: int, options: StackOptions) -> Process:
    service = name.partition("-")[0]
    more = [f"--kubeconfig={kubeconfig_of(options)}"]
    if service != "binder":
        more = [f"--plugin={path.resolve()}" for path in options.plugins]
    return Process(
        name=name,
        module=f"services.{service}",
        options=[f"--host={HOST}", f"--port={port}", *_common(admin), *more],
        log=options.directory / f"{name}.log",
    )


def _gateway(
    options: StackOptions, services: Mapping[str, str], extender: int, admin: int
) -> Process:
    more = [f"--config={options.config}"] if options.config else []
    more += [f"--scorer={place}" for name, place in services.items() if name.startswith("scorer")]
    return Process(
        name="gateway",
        module="gateway",
        options=[
            f"--extender-host={HOST}",
            f"--extender-port={extender}",
            f"--kubeconfig={kubeconfig_of(options)}",
            f"--filter={services['filter']}",
            f"--binder={services['binder']}",
            *_common(admin),
            *more,
        ],
        log=options.directory / "gateway.log",
    )


def _sandbox() -> list[str]:
    return ["--log-format=text", f"--exit-with-parent={os.getpid()}"]


def _common(admin: int) -> list[str]:
    return [
        *_sandbox(),
        f"--admin-host={HOST}",
        f"--admin-port={admin}",
        "--shutdown-delay=0s",
        "--shutdown-grace=2s",
    ]
