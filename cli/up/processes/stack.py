"""Which processes `moorage up` starts, with which options, and where they are found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.config.extender import extender_weight
from cli.up.kubeconfig import kubeconfig
from cli.up.processes.process import Process, Processes, free_ports
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY
from moorage_host.tls.identities import service_identity
from sandbox.scheduler.config import SHIPPED, load_configuration

HOST = "127.0.0.1"

LOG = "--log-format=text"

SOON = ("--config-reload-interval=250ms", "--resolve-interval=1s")
"""The gateway notices a changed policy and other plugins of the binder sooner than in a cluster."""


SCATTERED = ("--min-nodes-per-shard=1", "--min-shard-time=0s")
"""Who runs several filters looks what a plugin does with a part of the nodes, however few."""


_OF_CYCLES = ("filterVerb", "prioritizeVerb", "preemptVerb", "weight")
"""Fields of an entry that one for binds does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """What the stand-in reads.

    Attributes:
        text: The configuration.
        http_timeout: Seconds that it gives a call of the extender; None if the services keep their
            own, because it is the shipped one or has no limit.
    """

    text: str
    http_timeout: float | None

    @property
    def gateway_options(self) -> list[str]:
        """The options with which the gateway answers within that time."""
        return [f"--http-timeout={self.http_timeout:g}s"] if self.http_timeout else []

    @property
    def binder_options(self) -> list[str]:
        """The options with which the binder uses that time."""
        return [f"--bind-timeout={self.http_timeout:g}s"] if self.http_timeout else []


def read_scheduler_config(
    given: Path | None, profiles: Sequence[str], score_scale: int
) -> SchedulerConfig:
    """Read a configuration, by default the shipped one, and have it serve the policy's profiles.

    It calls all verbs: plugins that are loaded later may need them. Binds have an entry of their
    own, as `moorage config extender` prints it, unless the configuration has one. The weight of the
    shipped one becomes the one that is printed.

    Raises:
        ConfigurationError: kube-scheduler would not start with it, or none of its extenders filters
            or scores.
    """
    file = given or SHIPPED
    extenders = load_configuration(file).extenders
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    cycles = [each for each in document.get("extenders") or () if not _only_binds(each)]
    if len(cycles) != 1 or len(extenders) > 2:
        raise ConfigurationError(
            f"{file}: extenders: must have one for Moorage, and may have one more for its binds, "
            f"not {len(extenders)}; `moorage config extender` prints them"
        )
    if not given:
        cycles[0]["weight"] = extender_weight(score_scale)
    if not any(each.bind_verb for each in extenders):
        document["extenders"] = _with_binds(cycles[0])
    known = {each.get("schedulerName"): each for each in document["profiles"]}
    document["profiles"] = [known.get(name, {"schedulerName": name}) for name in profiles]
    timeouts = [each.timeout for each in extenders if each.timeout is not None]
    timeout = min(timeouts, default=None) if given else None
    return SchedulerConfig(text=yaml.safe_dump(document), http_timeout=timeout)


def _only_binds(extender: Mapping[str, object]) -> bool:
    return bool(extender.get("bindVerb")) and not any(extender.get(verb) for verb in _OF_CYCLES)


def _with_binds(cycle: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return an entry and one for binds; kube-scheduler refuses a resource in two entries."""
    if cycle.get("managedResources"):
        return [{**cycle, "bindVerb": "bind"}]
    binds = {key: value for key, value in cycle.items() if key not in _OF_CYCLES}
    return [cycle, {**binds, "bindVerb": "bind", "ignorable": False}]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the user chose.

    Attributes:
        directory: Where logs and the kubeconfig go.
        kubeconfig: A real cluster instead of the embedded one.
        config: The policy file.
        profiles: The schedulerNames that the policy serves.
        plugins: Files and folders with plugins.
        context: A context of the kubeconfig; "" is the current one.
        scorers: How many scorer replicas to run.
        filters: How many filter replicas to run.
        shadow_replicas: Whether shadows have a filter and a scorer of their own.
        scheduler: The stand-in's configuration; None is the shipped one.
        gateway_options: More options of the gateway.
        extender_port: The gateway's port for kube-scheduler, 0 for a free one.
        admin_port: The gateway's admin port, 0 for a free one.
        api_port: The embedded API server's port, 0 for a free one.
        certificates: What `moorage certs` has written; None for plain text.
    """

    directory: Path
    kubeconfig: Path | None
    config: Path | None
    profiles: Sequence[str]
    plugins: Sequence[Path]
    context: str = ""
    scorers: int = 1
    filters: int = 1
    shadow_replicas: bool = False
    scheduler: SchedulerConfig | None = None
    gateway_options: Sequence[str] = ()
    extender_port: int = 0
    admin_port: int = 0
    api_port: int = 0
    certificates: Path | None = None


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
        addresses.kubeconfig.write_text(yaml.safe_dump(kubeconfig(addresses.api)))
        groups = [[_api_server(options, addresses)], *groups, [_scheduler(options, addresses)]]
    await processes.start(*groups)
    return addresses


def _choose_addresses(options: StackOptions) -> Addresses:
    filters = [f"filter-{i + 1}" for i in range(options.filters)] if options.filters > 1 else []
    scorers = [f"scorer-{i + 1}" for i in range(options.scorers)]
    names = [*(filters or ["filter"]), *scorers, "binder"]
    names += ["shadow-filter", "shadow-scorer"] if options.shadow_replicas else []
    extender, admin, scheduler, api, *ports = free_ports(4 + len(names))
    scheme = "https" if options.certificates else "http"
    return Addresses(
        extender=f"{scheme}://{HOST}:{options.extender_port or extender}",
        admin=f"{scheme}://{HOST}:{options.admin_port or admin}",
        scheduler="" if options.kubeconfig else f"http://{HOST}:{scheduler}",
        services={name: f"{HOST}:{port}" for name, port in zip(names, ports, strict=True)},
        api="" if options.kubeconfig else f"http://{HOST}:{options.api_port or api}",
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
    config = options.scheduler or read_scheduler_config(None, options.profiles, 100)
    file = options.directory / "kube-scheduler-config.yaml"
    file.write_text(_with_tls(config.text, options.certificates))
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


def _service(name: str, options: StackOptions, addresses: Addresses) -> Process:
    service, port = name.removeprefix("shadow-").partition("-")[0], _port(addresses.services[name])
    more = [f"--plugin={path.resolve()}" for path in options.plugins]
    if service == "binder":
        more += _cluster(options, addresses)
        more += options.scheduler.binder_options if options.scheduler else []
    # Nobody needs its admin port to be the same after a restart.
    address = [f"--host={HOST}", f"--port={port}", "--share-port", *_admin(0)]
    return Process(
        name=name,
        module=f"services.{service}",
        options=[*address, LOG, *_tls(options, service), *more],
        log=options.directory / f"{name}.log",
    )


def _gateway(options: StackOptions, addresses: Addresses) -> Process:
    services = addresses.services
    more = [f"--config={options.config}"] if options.config else []
    more += options.scheduler.gateway_options if options.scheduler else []
    for name, place in services.items():
        if (service := name.partition("-")[0]) in ("filter", "scorer"):
            more.append(f"--{service}={place}")
        elif service == "shadow":
            more.append(f"--{name}={place}")
    if options.filters > 1:
        more += SCATTERED
    return Process(
        name="gateway",
        module="gateway",
        options=[
            f"--extender-host={HOST}",
            f"--extender-port={_port(addresses.extender)}",
            *_cluster(options, addresses),
            f"--binder={services['binder']}",
            LOG,
            *_tls(options, "gateway"),
            *_admin(_port(addresses.admin)),
            *SOON,
            *more,
            *options.gateway_options,
        ],
        log=options.directory / "gateway.log",
    )


def _cluster(options: StackOptions, addresses: Addresses) -> list[str]:
    context = [f"--context={options.context}"] if options.context else []
    return [f"--kubeconfig={addresses.kubeconfig}", *context]


def _tls(options: StackOptions, identity: str) -> list[str]:
    return [f"--tls={options.certificates / identity}"] if options.certificates else []


def _with_tls(config: str, certificates: Path | None) -> str:
    """Return a configuration of kube-scheduler whose extenders are called with its certificate."""
    if certificates is None:
        return config
    document, folder = yaml.safe_load(config), certificates / "scheduler"
    files = {"caFile": AUTHORITIES, "certFile": CHAIN, "keyFile": KEY}
    tls = {key: str(folder / name) for key, name in files.items()}
    tls["serverName"] = service_identity("gateway")
    for extender in document["extenders"]:
        extender |= {"enableHTTPS": True, "tlsConfig": tls}
    return yaml.safe_dump(document)


def _admin(port: int) -> list[str]:
    return [
        f"--admin-host={HOST}",
        f"--admin-port={port}",
        "--shutdown-delay=0s",
        "--shutdown-grace=2s",
    ]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
