"""Checks that the extender is reachable from where kube-scheduler runs.

Nothing is run there: kube-scheduler's image has no shell. Instead each step of the way is looked
at, and then what both ends report: Events of kube-scheduler, and the gateway's record of callers.
"""

from collections.abc import Iterator
from datetime import datetime

from cli.doctor.checks.check import Check, Result, listed, ok, problem, unchecked, warning, worst
from cli.doctor.checks.network import forbidding
from cli.doctor.checks.route import Route, routes
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.known import Missing, NotReadError
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import is_active, name_of

DNS_OF_CLUSTER = "ClusterFirstWithHostNet"

EXTENDER_PORT = 8888

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


def scheduler_known(installation: Installation) -> Result:
    """Find a kube-scheduler that asks an extender."""
    found = installation.configurations
    names = [scheduler.source for scheduler, _ in found]
    running = [pod for scheduler, _ in found for pod in scheduler.pods if is_active(pod)]
    if any(scheduler.pods for scheduler, _ in found) and not running:
        return problem(
            f"no pod of the kube-scheduler with {listed(names)} runs",
            "look at its pods with kubectl describe, and at their log",
        )
    return ok(f"kube-scheduler asks extenders: {listed(names)}")


def address(installation: Installation) -> Result:
    """Find the Service, or the gateway in the same pod, that each urlPrefix leads to."""
    found = list(routes(installation))
    return worst(
        (_address(installation, entry, way) for entry, way in found),
        ok(f"{listed([way.shown for _, way in found])}"),
    )


def _address(installation: Installation, entry: Entry, way: Route) -> Result:
    url = entry.extender.url_prefix
    if way.problem:
        return problem(f"{entry.place}: {way.problem}", way.change)
    if way.service is not None:
        ports = [each["port"] for each in way.service["spec"].get("ports") or ()]
        if way.port not in ports:
            return problem(
                f"{entry.place}: {url} names port {way.port}, Service {name_of(way.service)} has "
                f"{listed([str(port) for port in ports])}",
                f"write port {ports[0] if ports else EXTENDER_PORT} into urlPrefix",
            )
    prefix = installation.own.extender_prefix.rstrip("/")
    if way.path.rstrip("/") != prefix:
        return problem(
            f"{entry.place}: the path of {url} is {way.path or 'empty'}, the gateway's "
            f"--extender-prefix is {prefix or 'empty'}",
            "make them equal: kube-scheduler gets 404 otherwise",
        )
    return ok(way.shown)


def names_resolve(installation: Installation) -> Result:
    """Refuse names of Services where kube-scheduler uses its node's DNS."""
    results = []
    for entry, way in routes(installation):
        pods = [pod for pod in entry.scheduler.pods if pod["spec"].get("hostNetwork")]
        if way.is_name and pods and not way.is_alias:
            policy = pods[0]["spec"].get("dnsPolicy", "ClusterFirst")
            if policy != DNS_OF_CLUSTER:
                cluster_ip = way.service["spec"].get("clusterIP") if way.service else "CLUSTER-IP"
                results.append(
                    problem(
                        f"{name_of(pods[0])} is on its node's network with dnsPolicy {policy}, "
                        f"where {way.host} does not resolve",
                        f"write https://{cluster_ip}:{way.port} into urlPrefix, and "
                        "tlsConfig.serverName moorage-gateway",
                    )
                )
        elif way.is_name and entry.scheduler.is_file and not pods and way.service is not None:
            results.append(
                warning(
                    f"{entry.place} names {way.host}; whether kube-scheduler is on its node's "
                    "network, where it would not resolve, is not known",
                    "write the Service's cluster IP if it is a static pod",
                )
            )
    return worst(results, ok("each name in urlPrefix resolves where its kube-scheduler runs"))


def endpoints(installation: Installation) -> Result:
    """Find a ready gateway behind each Service."""
    results = []
    ways = [way for _, way in routes(installation) if way.service is not None]
    if not ways:
        return unchecked("no urlPrefix leads to a Service of the gateway's namespace")
    for way in ways:
        assert way.service is not None  # noqa: S101 - see above
        name = way.service["metadata"]["name"]
        slices = [
            each
            for each in installation.objects.of("endpointslices")
            if (each["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
        ]
        ready = [
            each
            for part in slices
            for each in part.get("endpoints") or ()
            if (each.get("conditions") or {}).get("ready", True)
        ]
        if not ready:
            results.append(
                problem(
                    f"Service {name_of(way.service)} has no ready endpoint: connections to it fail",
                    "see why no gateway is ready: kubectl describe, and the check gateway-ready",
                )
            )
    return worst(results, ok("each Service that kube-scheduler calls has a ready endpoint"))


def policies(installation: Installation) -> Result:
    """Evaluate the NetworkPolicies that select the gateway."""
    gateways = [pod for pod in installation.pods("gateway") if is_active(pod)]
    every = installation.objects.of("networkpolicies")
    results = []
    for entry, way in routes(installation):
        for pod in entry.scheduler.pods[:1]:
            labels = _labels_of(installation, pod["metadata"]["namespace"])
            for gateway in gateways[:1] if way.service is not None else ():
                port = _target_port(way.service, gateway)
                if names := forbidding(every, gateway, pod, labels, port):
                    peer = (
                        "an ipBlock with the addresses of the control plane's nodes"
                        if pod["spec"].get("hostNetwork")
                        else f"the pod {name_of(pod)} by its labels"
                    )
                    results.append(
                        problem(
                            f"NetworkPolicy {listed(names)} lets {name_of(pod)} not connect to "
                            f"{name_of(gateway)}, port {port}",
                            f"add {peer} to its ingress rules for port {port}",
                        )
                    )
    return worst(results, ok(f"none of {len(every)} NetworkPolicies keeps kube-scheduler away"))


def events(installation: Installation) -> Result:
    """Read what kube-scheduler itself reports of calls that failed."""
    prefixes = [entry.extender.url_prefix.rstrip("/") for entry in installation.entries]
    found = [
        each
        for each in installation.objects.of("events")
        if any(prefix in str(each.get("message", "")) for prefix in prefixes)
    ]
    if not found:
        return ok("no Event of kube-scheduler names a call of the extender that failed")
    newest = max(found, key=_seen)
    message = " ".join(str(newest["message"]).split())
    change = next((hint for text, hint in HINTS.items() if text in message), "")
    result = problem if _is_new(installation, newest) else warning
    involved = newest.get("involvedObject") or {}
    pod = f"{involved.get('namespace', '')}/{involved.get('name', '')}"
    return result(
        f"{len(found)} Events report failed calls, last {_seen(newest)} about {pod}: "
        f"{message[:300]}",
        change or "look at the gateway's log at that time",
    )


def called(installation: Installation) -> Result:
    """Read who called the extender last."""
    callers = [each for each in installation.replicas.callers if not each.refused]
    if callers:
        newest = min(callers, key=lambda each: each.seconds_ago)
        whose = _whose(installation, newest.caller)
        return ok(
            f"last call {newest.seconds_ago:.0f} s ago: {newest.verb} by {newest.caller}{whose}"
        )
    waiting = _waiting(installation)
    if waiting:
        return problem(
            f"{listed(waiting)} waits for a scheduler, and nobody has called the gateway since it "
            "started",
            "look at kube-scheduler's log, and at the other checks of this group",
        )
    return warning(
        "nobody has called the gateway since it started, and no pod waits for it",
        f"create a pod with schedulerName: {_profile(installation)}, and run this again",
    )


def refused(installation: Installation) -> Result:
    """Read which callers the extender refused."""
    others = [each for each in installation.replicas.callers if each.refused]
    identities = ", ".join(installation.own.scheduler_identities)
    if others:
        newest = min(others, key=lambda each: each.seconds_ago)
        return problem(
            f"the gateway refused {newest.calls} calls of {newest.caller}, last "
            f"{newest.seconds_ago:.0f} s ago: it is for {identities}",
            "issue kube-scheduler's certificate for that name, or add its name to the gateway's "
            "--scheduler-identity",
        )
    gateway = installation.gateway
    if isinstance(gateway, Missing) or isinstance(gateway.process, Missing):
        return unchecked("the gateway's metrics cannot be read")
    failed = gateway.process.total(
        "moorage_http_refused_total", port="extender", reason="handshake"
    )
    if failed:
        return warning(
            f"{failed:.0f} connections to the extender ended in the TLS handshake",
            "see the gateway's log for the cause; if it is kube-scheduler, its client certificate "
            "is missing, expired or of another authority",
        )
    return ok("the extender refused no caller")


def _labels_of(installation: Installation, namespace: str) -> dict[str, str]:
    try:
        found = installation.objects.named("namespaces", namespace)
    except NotReadError:
        found = None
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    return {"kubernetes.io/metadata.name": namespace, **labels}


def _target_port(service: Object | None, pod: Object) -> int:
    """Return the number of the container's port behind a Service."""
    ports = (service["spec"].get("ports") if service else None) or [{}]
    target = ports[0].get("targetPort", ports[0].get("port", EXTENDER_PORT))
    if isinstance(target, int):
        return target
    named = (
        each["containerPort"]
        for container in pod["spec"]["containers"]
        for each in container.get("ports") or ()
        if each.get("name") == target
    )
    return next(named, EXTENDER_PORT)


def _whose(installation: Installation, caller: str) -> str:
    """Return which kube-scheduler has the address of a caller."""
    for scheduler in installation.schedulers:
        for pod in scheduler.pods:
            status = pod.get("status") or {}
            if any(status.get(k) == caller.rpartition(" ")[2] for k in ("podIP", "hostIP")):
                return f", which is {name_of(pod)}"
    return ""


def _waiting(installation: Installation) -> list[str]:
    """Return the pods that wait and name a profile of the policy."""
    try:
        profiles = installation.policy.profiles
        pods = installation.objects.of("waiting pods")
    except NotReadError:
        return []
    return [name_of(pod) for pod in pods if pod["spec"].get("schedulerName") in profiles]


def _profile(installation: Installation) -> str:
    try:
        return next(iter(installation.policy.profiles), "moorage")
    except NotReadError:
        return "moorage"


def _seen(event: Object) -> str:
    series = event.get("series") or {}
    times: Iterator[str | None] = iter(
        (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    )
    return next((each for each in times if each), "")


def _is_new(installation: Installation, event: Object) -> bool:
    """Whether an Event is newer than the last call that the gateway answered."""
    try:
        ages = [c.seconds_ago for c in installation.replicas.callers if not c.refused]
        seen = datetime.fromisoformat(_seen(event))
    except (NotReadError, ValueError):
        return True
    age = (installation.now - seen).total_seconds()
    return not ages or age < min(ages)


CHECKS = (
    Check(
        name="scheduler-known",
        about="A kube-scheduler with an extender runs, and its configuration can be read.",
        run=scheduler_known,
    ),
    Check(
        name="extender-address",
        about="urlPrefix leads to the gateway: host, port and path.",
        run=address,
    ),
    Check(
        name="extender-dns",
        about="A name in urlPrefix resolves where kube-scheduler runs: on a node's network, as "
        "static pods are, names of Services do not.",
        run=names_resolve,
    ),
    Check(
        name="extender-endpoints",
        about="The Service has a ready gateway.",
        run=endpoints,
    ),
    Check(
        name="extender-network-policy",
        about="No NetworkPolicy keeps kube-scheduler from the gateway's port.",
        run=policies,
    ),
    Check(
        name="extender-events",
        about="No Event of kube-scheduler reports a call of the extender that failed.",
        run=events,
    ),
    Check(
        name="extender-called",
        about="The gateway's own record of callers: kube-scheduler has called, when and as whom.",
        run=called,
    ),
    Check(
        name="extender-refused",
        about="The gateway has refused no caller and no connection.",
        run=refused,
    ),
)
