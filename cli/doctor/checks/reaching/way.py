"""Checks each step of the way from kube-scheduler to the gateway."""

from collections.abc import Sequence

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning, worst
from cli.doctor.checks.reaching.network import Connection, forbidding
from cli.doctor.checks.reaching.route import Route, routes
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.known import NotReadError
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import is_active, name_of

DNS_OF_CLUSTER = "ClusterFirstWithHostNet"

EXTENDER_PORT = 8888


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
    """Evaluate the NetworkPolicies that select the gateway or kube-scheduler."""
    every = installation.objects.of("networkpolicies")
    gateway = next((pod for pod in installation.pods("gateway") if is_active(pod)), None)
    if gateway is None:
        return unchecked("no pod of a gateway runs")
    results = [
        _allowed(every, _connection(installation, pod, gateway, way))
        for entry, way in routes(installation)
        for pod in entry.scheduler.pods[:1]
        if way.service is not None
    ]
    return worst(results, ok(f"none of {len(every)} NetworkPolicies keeps kube-scheduler away"))


def _connection(
    installation: Installation, scheduler: Object, gateway: Object, way: Route
) -> Connection:
    return Connection(
        source=scheduler,
        source_labels=_labels_of(installation, scheduler["metadata"]["namespace"]),
        target=gateway,
        target_labels=_labels_of(installation, gateway["metadata"]["namespace"]),
        port=_target_port(way.service, gateway),
    )


def _allowed(every: Sequence[Object], connection: Connection) -> Result:
    source, port = connection.source, connection.port
    names = forbidding(every, connection)
    if not names:
        return ok("allowed")
    peer = f"the pod {name_of(source)} by its labels"
    if source["spec"].get("hostNetwork"):
        peer = "an ipBlock with the addresses of the control plane's nodes"
    return problem(
        f"NetworkPolicy {listed(names)}: {name_of(source)} may not connect to "
        f"{name_of(connection.target)}, port {port}",
        f"allow {peer} into the gateway's port {port}, and out of kube-scheduler's pod",
    )


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
)
