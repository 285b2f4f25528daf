"""Where an extender's urlPrefix leads: to a Service, into the same pod, to an address."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import name_of, runs
from moorage.errors import suggestion

PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way of a call.

    Attributes:
        host: The host of the URL.
        port: Its port.
        path: Its path.
        service: The Service that it leads to.
        is_name: Whether the host is a name.
        is_alias: Whether the pod itself resolves it.
        shown: The way in words.
        problem: Why it leads nowhere.
        change: What to do about it.
    """

    host: str
    port: int
    path: str
    service: Object | None = None
    is_name: bool = False
    is_alias: bool = False
    shown: str = ""
    problem: str = ""
    change: str = ""


def routes(installation: Installation) -> Iterator[tuple[Entry, Route]]:
    """Yield each extender with its way.

    Raises:
        NotReadError: No configuration could be read.
    """
    return ((entry, route(installation, entry)) for entry in installation.entries)


def route(installation: Installation, entry: Entry) -> Route:
    """Return where an extender's urlPrefix leads.

    Raises:
        NotReadError: The Services could not be read.
    """
    url = entry.extender.url_prefix
    parts = urlsplit(url)
    try:
        port = parts.port or PORTS[parts.scheme]
    except (KeyError, ValueError):
        return Route(
            host="",
            port=0,
            path="",
            problem=f"{url!r} is no URL: every call fails",
            change="write https://HOST:PORT",
        )
    host, path = parts.hostname or "", parts.path
    aliases = _aliases(entry)
    target = aliases.get(host, host)
    is_name, is_alias = not _is_address(host), host in aliases
    if _is_loopback(target):
        return _loopback(entry, Route(host=host, port=port, path=path, is_alias=is_alias))
    service, problem = _service(installation, entry, target)
    return Route(
        host=host,
        port=port,
        path=path,
        service=service,
        is_name=is_name,
        is_alias=is_alias,
        shown=f"{url} is Service {name_of(service)}" if service else f"{url} is no Service",
        problem=problem,
        change="compare urlPrefix with kubectl get services" if problem else "",
    )


def _loopback(entry: Entry, way: Route) -> Route:
    url = entry.extender.url_prefix
    pods = [pod for pod in entry.scheduler.pods if not pod["spec"].get("hostNetwork")]
    if pods and not any(runs(pod, "gateway") for pod in pods):
        return replace(
            way,
            problem=f"{url} is loopback, and no gateway runs in {name_of(pods[0])}",
            change="write the Service's address, or add the gateway to that pod",
        )
    return replace(way, shown=f"{url} is loopback, with the gateway beside kube-scheduler")


def _service(installation: Installation, entry: Entry, host: str) -> tuple[Object | None, str]:
    """Return the Service of a name or an address, or why there is none."""
    services = installation.objects.of("services")
    if _is_address(host):
        found = next((s for s in services if s["spec"].get("clusterIP") == host), None)
        return found, ""  # any other address may be a load balancer's or a node's
    name, _, rest = host.partition(".")
    space, _, domain = rest.partition(".")
    if domain and not domain.startswith("svc"):
        return None, ""  # some other name
    space = space or _namespace(entry)
    if space and space != installation.namespace:
        return None, (
            f"{host} is in namespace {space}, the gateway in {installation.namespace}"
            if domain or not rest
            else ""
        )
    found = next((s for s in services if s["metadata"]["name"] == name), None)
    if found is not None:
        return found, ""
    near = suggestion(name, [s["metadata"]["name"] for s in services])
    return None, f"there is no Service {name} in namespace {installation.namespace}{near}"


def _namespace(entry: Entry) -> str:
    pods = entry.scheduler.pods
    return str(pods[0]["metadata"]["namespace"]) if pods else ""


def _aliases(entry: Entry) -> dict[str, str]:
    return {
        name: alias["ip"]
        for pod in entry.scheduler.pods[:1]
        for alias in pod["spec"].get("hostAliases") or ()
        for name in alias.get("hostnames") or ()
    }


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
