"""Checks the way from kube-scheduler to the gateway, and what both ends report of it."""

import ipaddress
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from msgspec import structs

from cli.doctor.check import Finding, listed, problem, warning
from cli.doctor.installation.installation import FoundExtender, Installation
from cli.doctor.installation.objects import NotReadError
from cli.shared.gateway.pods import Object, is_active, name_of, runs
from moorage.errors import suggestion
from moorage_host.kube_scheduler import KubeSchedulerConfiguration
from moorage_host.tls.certificate import SHARE_LEFT

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
    "then for slow plugins in the inspector",
    "EOF": "give kube-scheduler a client certificate of the gateway's authority: with TLS 1.3 a "
    "refused one looks like this",
    "code 403": "issue kube-scheduler's certificate for a name in --scheduler-identity",
    "code 404": "compare the path and the verbs in urlPrefix with the gateway's --extender-prefix",
}
"""What to change, by what kube-scheduler reports."""

EVENT_SECONDS = 1.0
"""How exact the time of an Event is."""


def scheduler_known(installation: Installation) -> Iterator[Finding]:
    """A kube-scheduler with an extender runs, and would start with its configuration."""
    for each in installation.schedulers:
        configuration = each.written or each.configuration
        if isinstance(configuration, NotReadError) and "not start" in str(configuration):
            yield problem(f"{each.source}: {configuration}", "correct it and restart it")
    found = installation.configurations
    pods = [pod for scheduler, _ in found for pod in scheduler.pods]
    if pods and not any(is_active(pod) for pod in pods):
        yield problem(
            f"no pod of the kube-scheduler with {listed([each.source for each, _ in found])} runs",
            "look at its pods with kubectl describe, and at their log",
        )


def scheduler_current(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler runs with the extenders and profiles that its file has.

    What runs is read from `/configz`, with a client certificate that may read it.
    """
    for each in installation.schedulers:
        written, runs_with = each.written, each.configuration
        if isinstance(written, NotReadError) or isinstance(runs_with, NotReadError):
            continue  # another check says so
        if written is not None and _compared(written) != _compared(runs_with):
            yield problem(
                f"the kube-scheduler with {each.source} runs with another configuration than that",
                "restart it: it reads the file once",
            )


def _compared(configuration: KubeSchedulerConfiguration) -> object:
    extenders = [
        structs.replace(each, http_timeout=f"{each.timeout}s") for each in configuration.extenders
    ]
    return extenders, configuration.scheduler_names


def extender_address(installation: Installation) -> Iterator[Finding]:
    """The urlPrefix leads to the gateway, by a name that resolves where kube-scheduler runs."""
    for entry in installation.entries:
        url = urlsplit(entry.extender.url_prefix)
        try:
            port = url.port or PORTS[url.scheme]
        except (KeyError, ValueError):
            yield problem(
                f"{entry.place}: {entry.extender.url_prefix!r} is no URL: every call fails",
                "write https://HOST:PORT",
            )
            continue
        aliases = {
            name: alias["ip"]
            for pod in entry.scheduler.pods[:1]
            for alias in pod["spec"].get("hostAliases") or ()
            for name in alias.get("hostnames") or ()
        }
        host = aliases.get(url.hostname, url.hostname or "")
        if host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
            pods = [pod for pod in entry.scheduler.pods if not pod["spec"].get("hostNetwork")]
            ours = installation.replicas["gateway"]["extenderPort"]  # 0: whichever was free
            if pods and not any(runs(pod, "gateway") for pod in pods):
                yield problem(
                    f"{entry.place}: {host} is loopback, and no gateway runs in {name_of(pods[0])}",
                    "write the Service's address, or add the gateway to that pod",
                )
            elif ours not in (0, port):
                yield problem(
                    f"{entry.place} names port {port} of {host}, and the gateway listens on {ours}",
                    f"write port {ours} into urlPrefix",
                )
        else:
            yield from _service(installation, entry, host, port)


def _service(
    installation: Installation, entry: FoundExtender, host: str, port: int
) -> Iterator[Finding]:
    """Follow a host to the Service that it is the name or the cluster IP of."""
    services = installation.objects.of("services")
    if _is_address(host):  # one that is no Service's may be a load balancer's or a node's
        found = next((each for each in services if each["spec"].get("clusterIP") == host), None)
    else:
        name, namespace, domain = (*host.split(".", 2), "", "")[:3]
        if domain and not domain.startswith("svc"):
            return
        ours = (namespace or installation.namespace) == installation.namespace
        found = next((s for s in services if ours and s["metadata"]["name"] == name), None)
        if found is None:
            near = suggestion(name, [each["metadata"]["name"] for each in services])
            yield problem(
                f"{entry.place}: there is no Service {name} in namespace "
                f"{namespace or installation.namespace} with the gateway{near}",
                "compare urlPrefix with kubectl get services",
            )
    if found is None:
        return
    for pod in entry.scheduler.pods:
        policy = pod["spec"].get("dnsPolicy", "ClusterFirst")
        on_host = pod["spec"].get("hostNetwork") and policy != DNS_OF_CLUSTER
        if on_host and not _is_address(host):
            yield problem(
                f"{name_of(pod)} is on its node's network with dnsPolicy {policy}, where {host} "
                "does not resolve",
                f"write https://{found['spec'].get('clusterIP', 'CLUSTER-IP')}:{port} into "
                "urlPrefix, and tlsConfig.serverName moorage-gateway",
            )
    ports = [str(each["port"]) for each in found["spec"].get("ports") or ()]
    if str(port) not in ports:
        yield problem(
            f"{entry.place} names port {port}, Service {name_of(found)} has {listed(ports)}",
            f"write port {ports[0] if ports else 8888} into urlPrefix",
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def client_certificate(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler's client certificate has more than a third of its life left."""
    for each in installation.replicas["callers"]:
        if each["refused"] or not each["certificate"]:
            continue
        begin, end = each["certificate"]["notBefore"], each["certificate"]["notAfter"]
        left = (end - installation.now.timestamp()) / (end - begin)
        if left < SHARE_LEFT:
            time = datetime.fromtimestamp(end, UTC)
            yield (warning if left > 0 else problem)(
                f"the certificate of {each['caller']} expires at {time:%FT%TZ}: less than a third "
                "of its life is left",
                "renew it: `moorage certs --secrets NAMESPACE`, or see why cert-manager does not",
            )


def extender_events(installation: Installation) -> Iterator[Finding]:
    """No Event of kube-scheduler reports a call of the extender that failed."""
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


def extender_called(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler has called, and no caller was refused.

    No prioritize call failed, which kube-scheduler hides.
    """
    callers = sorted(installation.replicas["callers"], key=lambda each: each["secondsAgo"])
    allowed = ", ".join(installation.replicas["gateway"]["schedulerIdentities"])
    for each in [each for each in callers if each["refused"]][:1]:
        yield problem(
            f"the gateway refused {each['calls']} calls of {each['caller']}, last "
            f"{each['secondsAgo']:.0f} s ago: it is for {allowed}",
            "issue kube-scheduler's certificate for that name, or add its name to the gateway's "
            "--scheduler-identity",
        )
    if not any(not each["refused"] for each in callers):
        yield warning(
            "nobody has called the gateway since it started",
            "create a pod with schedulerName: "
            f"{next(iter(installation.policy['profiles']), 'moorage')}, and run this again; if it "
            "waits, look at kube-scheduler's log, and at the other checks of this group",
        )
    metrics = installation.report.process.metrics
    if hidden := metrics.total("moorage_extender_hidden_failures_total"):
        yield warning(
            f"{hidden:.0f} prioritize calls failed, which kube-scheduler does not report: pods are "
            "placed without scores",
            "look for the failure in the gateway's log",
        )


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
        callers = installation.replicas["callers"]
        age = (installation.now - datetime.fromisoformat(_seen(event))).total_seconds()
    except (NotReadError, ValueError):
        return True
    return all(each["refused"] or age <= each["secondsAgo"] + EVENT_SECONDS for each in callers)
