"""Checks the way from kube-scheduler to the gateway, and what both ends report of it."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.objects import Missing, NotReadError, Object
from cli.doctor.installation.pods import is_active, name_of, runs
from moorage.errors import suggestion

PORTS = {"https": 443, "http": 80}

DNS_OF_CLUSTER = "ClusterFirstWithHostNet"

HINTS = {
    "no such host": "write the Service's cluster IP into urlPrefix, and tlsConfig.serverName",
    "connection refused": "see whether the gateway is ready, and compare the port in urlPrefix",
    "certificate signed by unknown authority": "give kube-scheduler the ca.crt of the gateway's "
    "authority as tlsConfig.caFile, and restart it: it reads that file once",
    "certificate is valid for": "set tlsConfig.serverName to moorage-gateway",
    "certificate has expired": "renew the certificates",
    "deadline exceeded": "look for a NetworkPolicy or firewall between kube-scheduler and gateway, "
    "then for slow plugins in `moorage top`",
    "EOF": "give kube-scheduler a client certificate of the gateway's authority: with TLS 1.3 a "
    "refused one looks like this",
    "code 403": "issue kube-scheduler's certificate for a name in --scheduler-identity",
    "code 404": "compare the path and the verbs in urlPrefix with the gateway's --extender-prefix",
}
"""What to change, by what kube-scheduler reports."""

EVENT_SECONDS = 1.0
"""How exact the time of an Event is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where the urlPrefix of an extender leads: a Service, the same pod, or elsewhere."""

    entry: Entry
    url: str
    host: str
    port: int
    path: str
    target: str
    """The host, or the address that the pod's own hostAliases give it."""

    @property
    def is_name(self) -> bool:
        """Whether a name has to be resolved, and not by the pod itself."""
        return not _is_address(self.target)

    @property
    def is_loopback(self) -> bool:
        """Whether it leads into the same pod."""
        return self.target == "localhost" or (
            _is_address(self.target) and ipaddress.ip_address(self.target).is_loopback
        )


def scheduler(installation: Installation) -> Iterator[Result]:
    """Find a kube-scheduler that asks an extender, and would start again."""
    for each in installation.schedulers:
        configuration = each.configuration
        if isinstance(configuration, Missing) and "not start" in configuration.reason:
            yield problem(f"{each.source}: {configuration.reason}", "correct it and restart it")
    found = installation.configurations
    names = [scheduler.source for scheduler, _ in found]
    pods = [pod for scheduler, _ in found for pod in scheduler.pods]
    if pods and not any(is_active(pod) for pod in pods):
        yield problem(
            f"no pod of the kube-scheduler with {listed(names)} runs",
            "look at its pods with kubectl describe, and at their log",
        )
    yield ok(f"kube-scheduler asks extenders: {listed(names)}")


def address(installation: Installation) -> Iterator[Result]:
    """Follow each urlPrefix: the name, the Service, its port, the endpoints and the path."""
    shown = []
    for entry in installation.entries:
        way = _route(entry)
        if way is None:
            yield problem(
                f"{entry.place}: {entry.extender.url_prefix!r} is no URL: every call fails",
                "write https://HOST:PORT",
            )
            continue
        shown.append(way.url)
        yield from _loopback(way) if way.is_loopback else _service(installation, way)
        prefix = installation.own.extender_prefix.rstrip("/")
        if way.path.rstrip("/") != prefix:
            yield problem(
                f"{entry.place}: the path of {way.url} is {way.path or 'empty'}, the gateway's "
                f"--extender-prefix is {prefix or 'empty'}",
                "make them equal: kube-scheduler gets 404 otherwise",
            )
    yield ok(f"{listed(shown)} leads to the gateway")


def _loopback(way: Route) -> Iterator[Result]:
    pods = [pod for pod in way.entry.scheduler.pods if not pod["spec"].get("hostNetwork")]
    if pods and not any(runs(pod, "gateway") for pod in pods):
        yield problem(
            f"{way.entry.place}: {way.url} is loopback, and no gateway runs in {name_of(pods[0])}",
            "write the Service's address, or add the gateway to that pod",
        )


def _service(installation: Installation, way: Route) -> Iterator[Result]:
    services = installation.objects.of("services")
    name, _, rest = way.target.partition(".")
    namespace, _, domain = rest.partition(".")
    is_cluster = way.is_name and (not domain or domain.startswith("svc"))
    if way.is_name and not is_cluster:
        return  # some other name
    if is_cluster and (namespace or installation.namespace) != installation.namespace:
        yield problem(
            f"{way.entry.place}: {way.host} is in namespace {namespace}, the gateway in "
            f"{installation.namespace}",
            "compare urlPrefix with kubectl get services",
        )
        return
    found = next((each for each in services if _is_meant(each, way, name)), None)
    if found is None:
        if way.is_name:  # another address may be a load balancer's or a node's
            near = suggestion(name, [s["metadata"]["name"] for s in services])
            yield problem(
                f"{way.entry.place}: there is no Service {name} in namespace "
                f"{installation.namespace}{near}",
                "compare urlPrefix with kubectl get services",
            )
        return
    yield from _resolves(way, found)
    ports = [each["port"] for each in found["spec"].get("ports") or ()]
    if way.port not in ports:
        yield problem(
            f"{way.entry.place}: {way.url} names port {way.port}, Service {name_of(found)} has "
            f"{listed([str(port) for port in ports])}",
            f"write port {ports[0] if ports else 8888} into urlPrefix",
        )
    yield from _endpoints(installation, found)


def _is_meant(service: Object, way: Route, name: str) -> bool:
    if way.is_name:
        return bool(service["metadata"]["name"] == name)
    return bool(service["spec"].get("clusterIP") == way.target)


def _resolves(way: Route, service: Object) -> Iterator[Result]:
    """Refuse names of Services where kube-scheduler uses its node's DNS."""
    address = service["spec"].get("clusterIP", "CLUSTER-IP")
    for pod in way.entry.scheduler.pods:
        policy = pod["spec"].get("dnsPolicy", "ClusterFirst")
        if way.is_name and pod["spec"].get("hostNetwork") and policy != DNS_OF_CLUSTER:
            yield problem(
                f"{name_of(pod)} is on its node's network with dnsPolicy {policy}, where "
                f"{way.host} does not resolve",
                f"write https://{address}:{way.port} into urlPrefix, and tlsConfig.serverName "
                "moorage-gateway",
            )
    if way.is_name and way.entry.scheduler.is_file and not way.entry.scheduler.pods:
        yield warning(
            f"{way.entry.place} names {way.host}; whether kube-scheduler is on its node's network, "
            "where it would not resolve, is not known",
            "write the Service's cluster IP if it is a static pod",
        )


def _endpoints(installation: Installation, service: Object) -> Iterator[Result]:
    name = service["metadata"]["name"]
    ready = [
        each
        for part in installation.objects.of("endpointslices")
        if (part["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
        for each in part.get("endpoints") or ()
        if (each.get("conditions") or {}).get("ready", True)
    ]
    if not ready:
        yield problem(
            f"Service {name_of(service)} has no ready endpoint: connections to it fail",
            "see why no gateway is ready: kubectl describe, and the check processes-ready",
        )


def _route(entry: Entry) -> Route | None:
    url = entry.extender.url_prefix
    parts = urlsplit(url)
    try:
        port = parts.port or PORTS[parts.scheme]
    except (KeyError, ValueError):
        return None
    host = parts.hostname or ""
    aliases = {
        name: alias["ip"]
        for pod in entry.scheduler.pods[:1]
        for alias in pod["spec"].get("hostAliases") or ()
        for name in alias.get("hostnames") or ()
    }
    return Route(
        entry=entry,
        url=url,
        host=host,
        port=port,
        path=parts.path,
        target=aliases.get(host, host),
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def events(installation: Installation) -> Iterator[Result]:
    """Read what kube-scheduler itself reports of calls that failed."""
    prefixes = [entry.extender.url_prefix.rstrip("/") for entry in installation.entries]
    found = [
        each
        for each in installation.objects.of("events")
        if any(prefix in str(each.get("message", "")) for prefix in prefixes)
    ]
    if found:
        newest = max(found, key=_seen)
        message = " ".join(str(newest["message"]).split())
        change = next((hint for text, hint in HINTS.items() if text in message), "")
        result = problem if _is_new(installation, newest) else warning
        involved = newest.get("involvedObject") or {}
        pod = f"{involved.get('namespace', '')}/{involved.get('name', '')}"
        yield result(
            f"{len(found)} Events report failed calls, last {_seen(newest)} about {pod}: "
            f"{message[:300]}",
            change or "look at the gateway's log at that time",
        )
    yield ok("no Event of kube-scheduler names a call of the extender that failed")


def called(installation: Installation) -> Iterator[Result]:
    """Read who called the extender last, and whom it refused."""
    callers = installation.replicas.callers
    refused = [each for each in callers if each.refused]
    accepted = [each for each in callers if not each.refused]
    if refused:
        newest = min(refused, key=lambda each: each.seconds_ago)
        yield problem(
            f"the gateway refused {newest.calls} calls of {newest.caller}, last "
            f"{newest.seconds_ago:.0f} s ago: it is for "
            f"{', '.join(installation.own.scheduler_identities)}",
            "issue kube-scheduler's certificate for that name, or add its name to the gateway's "
            "--scheduler-identity",
        )
    if accepted:
        newest = min(accepted, key=lambda each: each.seconds_ago)
        yield ok(f"last call {newest.seconds_ago:.0f} s ago: {newest.verb} by {newest.caller}")
    elif waiting := _waiting(installation):
        yield problem(
            f"{listed(waiting)} waits for a scheduler, and nobody has called the gateway since it "
            "started",
            "look at kube-scheduler's log, and at the other checks of this group",
        )
    else:
        yield warning(
            "nobody has called the gateway since it started, and no pod waits for it",
            "create a pod with schedulerName: "
            f"{next(iter(installation.policy.profiles), 'moorage')}, and run this again",
        )


def answered(installation: Installation) -> Iterator[Result]:
    """Look for calls and connections of kube-scheduler that failed."""
    gateway = installation.gateway
    if isinstance(gateway, Missing) or isinstance(gateway.process, Missing):
        yield unchecked("the gateway's metrics cannot be read")
        return
    process, name = gateway.process, "moorage_extender_requests_total"
    every, good = process.total(name), process.total(name, result="ok")
    hidden = process.total("moorage_extender_hidden_failures_total")
    failed = process.total("moorage_http_refused_total", port="extender", reason="handshake")
    if hidden:
        yield warning(
            f"{hidden:.0f} prioritize calls failed, which kube-scheduler does not report: pods are "
            "placed without scores",
            "look for the failure in the gateway's log",
        )
    if every - good > every / 100:
        yield warning(
            f"{every - good:.0f} of {every:.0f} calls of kube-scheduler got no good answer",
            "look at moorage_extender_requests_total by result, and at the gateway's log",
        )
    if failed:
        yield warning(
            f"{failed:.0f} connections to the extender ended in the TLS handshake",
            "see the gateway's log for the cause; if it is kube-scheduler, its client certificate "
            "is missing, expired or of another authority",
        )
    yield ok(f"{good:.0f} of {every:.0f} calls of kube-scheduler got a good answer")


def _waiting(installation: Installation) -> list[str]:
    """Return the pods that wait and name a profile of the policy."""
    try:
        profiles = installation.policy.profiles
        pods = installation.objects.of("waiting pods")
    except NotReadError:
        return []
    return [name_of(pod) for pod in pods if pod["spec"].get("schedulerName") in profiles]


def _seen(event: Object) -> str:
    times = (
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
    )
    return next((each for each in times if each), "")


def _is_new(installation: Installation, event: Object) -> bool:
    """Whether an Event may be newer than the last call that the gateway answered."""
    try:
        ages = [c.seconds_ago for c in installation.replicas.callers if not c.refused]
        seen = datetime.fromisoformat(_seen(event))
    except (NotReadError, ValueError):
        return True
    age = (installation.now - seen).total_seconds()
    return not ages or age <= min(ages) + EVENT_SECONDS


CHECKS = (
    Check(
        name="scheduler-known",
        about="A kube-scheduler with an extender runs, and would start with its configuration.",
        run=scheduler,
    ),
    Check(
        name="extender-address",
        about="urlPrefix leads to a ready gateway: its name resolves where kube-scheduler runs, "
        "and host, port and path are the gateway's.",
        run=address,
    ),
    Check(
        name="extender-events",
        about="No Event of kube-scheduler reports a call of the extender that failed.",
        run=events,
    ),
    Check(
        name="extender-called",
        about="kube-scheduler has called, by the gateway's own record, and nobody was refused.",
        run=called,
    ),
    Check(
        name="calls-answered",
        about="kube-scheduler's calls get good answers; failures of prioritize are hidden there.",
        run=answered,
    ),
)
