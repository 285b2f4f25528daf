"""Checks certificates: who verifies whom, names, authorities, expiry."""

from collections.abc import Iterator, Mapping

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning, worst
from cli.doctor.checks.reaching.route import routes
from cli.doctor.installation.certificates import SCHEDULER, Identity
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.known import Missing, NotReadError, known
from moorage_host.tls.identities import service_identity
from moorage_host.tls.reload import SHARE_LEFT

RENEW = "renew it: `moorage certs --secrets NAMESPACE`, or see why cert-manager does not"


def verified(installation: Installation) -> Result:
    """Look whether kube-scheduler verifies the gateway's certificate."""
    secured = installation.report.is_secured
    entries = installation.entries
    return worst(
        (_verified(entry, secured) for entry in entries),
        ok("kube-scheduler verifies the gateway's certificate")
        if secured
        else ok("kube-scheduler calls the gateway in plain text on loopback"),
    )


def _verified(entry: Entry, secured: bool) -> Result:
    url, tls = entry.extender.url_prefix, entry.extender.tls_config
    if not url.startswith("https:"):
        if secured:
            return problem(
                f"{entry.place}: {url} is plain text, and the gateway has certificates",
                "write https:// with enableHTTPS and tlsConfig, as `moorage config extender` does",
            )
        if any(host in url for host in ("//127.", "//localhost", "//[::1]")):
            return ok("loopback")
        return warning(
            f"{entry.place}: {url} is plain text: who reaches that port can have any pod bound",
            "give the processes certificates with `moorage certs`, and write https://",
        )
    if tls is not None and tls.insecure:
        return problem(
            f"{entry.place}: tlsConfig.insecure: kube-scheduler believes any server",
            "remove it and set tlsConfig.caFile",
        )
    if entry.extender.enable_https and (tls is None or not tls.ca_file):
        return problem(
            f"{entry.place}: enableHTTPS without a CA: kube-scheduler verifies no certificate, and "
            "does not report that",
            "set tlsConfig.caFile to the ca.crt of the gateway's authority",
        )
    if tls is None or not tls.ca_file:
        return warning(
            f"{entry.place}: without tlsConfig.caFile the authorities of kube-scheduler's image "
            "count, which Moorage's is not among",
            "set enableHTTPS: true and tlsConfig.caFile",
        )
    return ok("verified")


def server_name(installation: Installation) -> Result:
    """Compare the name that kube-scheduler expects with the gateway's certificate."""
    gateway = _identity(installation, "gateway")
    results, expected = [], []
    for entry, way in routes(installation):
        tls = entry.extender.tls_config
        name = (tls.server_name if tls else "") or way.host
        expected.append(name)
        if entry.extender.url_prefix.startswith("https:") and name not in gateway.names:
            results.append(
                problem(
                    f"{entry.place} expects {name}; the gateway's certificate is for "
                    f"{listed(gateway.names)}",
                    "set tlsConfig.serverName: moorage-gateway",
                )
            )
    return worst(results, ok(f"the gateway's certificate is for {listed(expected)}"))


def client_identity(installation: Installation) -> Result:
    """Compare kube-scheduler's certificate with what the gateway accepts."""
    if not installation.report.is_secured:
        return ok("the gateway has no certificates, so nobody needs one")
    for entry in installation.entries:
        tls = entry.extender.tls_config
        if tls is None or not (tls.cert_file and tls.key_file):
            return problem(
                f"{entry.place}: kube-scheduler presents no certificate, and the gateway ends such "
                "connections",
                "set tlsConfig.certFile and keyFile",
            )
    allowed = installation.own.scheduler_identities
    certificate = _identity(installation, SCHEDULER)
    if not set(allowed) & set(certificate.names):
        return problem(
            f"{certificate.place} is for {listed(certificate.names)}; the gateway accepts "
            f"{', '.join(allowed)}",
            "issue it for that name, or set the gateway's --scheduler-identity",
        )
    return ok(f"{certificate.place} is for {listed(certificate.names)}")


def names(installation: Installation) -> Result:
    """Look whether the certificate of each service names the service."""
    found = dict(_services(installation))
    results = []
    for service, each in found.items():
        expected = service_identity(service)
        if expected not in each.names:
            results.append(
                problem(
                    f"{each.place} is for {listed(each.names)}, not for {expected}",
                    f"issue it with the DNS name {expected}",
                )
            )
        if each.lacks:
            results.append(
                problem(
                    f"the usages of {each.place} lack {' and '.join(each.lacks)}",
                    "issue it with both server auth and client auth",
                )
            )
    if not found:
        return unchecked(_unread(installation))
    return worst(results, ok(f"certificates of {listed(list(found))} name their services"))


def expiry(installation: Installation) -> Result:
    """Look how long each certificate is valid."""
    found = _identities(installation)
    if not found:
        return _expiry_of_metrics(installation)
    results = []
    for each in found.values():
        left = each.not_after - installation.now
        share = left / (each.not_after - each.not_before)
        if left.total_seconds() <= 0:
            results.append(problem(f"{each.place} expired at {each.not_after:%FT%TZ}", RENEW))
        elif installation.now < each.not_before:
            results.append(
                problem(
                    f"{each.place} is not valid before {each.not_before:%FT%TZ}", "check the clocks"
                )
            )
        elif share < SHARE_LEFT:
            results.append(
                warning(
                    f"{each.place} expires at {each.not_after:%FT%TZ}: less than a third of its "
                    "life is left",
                    RENEW,
                )
            )
    first = min(found.values(), key=lambda each: each.not_after)
    return worst(
        results, ok(f"the first of {len(found)} certificates expires at {first.not_after:%FT%TZ}")
    )


def _expiry_of_metrics(installation: Installation) -> Result:
    """Take the times of expiry from metrics, where Secrets cannot be read."""
    times = {
        name: process.total("moorage_tls_certificate_expiry_timestamp_seconds")
        for name, process in installation.processes.items()
        if not isinstance(process, Missing)
    }
    times = {name: time for name, time in times.items() if time}
    if not times:
        if not installation.report.is_secured:
            return ok("there are no certificates")
        raise NotReadError(_unread(installation))
    name = min(times, key=lambda each: times[each])
    left = (times[name] - installation.now.timestamp()) / 3600
    if left <= 0:
        return problem(f"the certificate of {name} has expired", RENEW)
    return ok(f"the first certificate, of {name}, expires in {left:.0f} hours")


def authority(installation: Installation) -> Result:
    """Look whether each process believes the authority of the others."""
    found = _identities(installation)
    if not found:
        raise NotReadError(_unread(installation))
    results = [
        problem(
            f"no authority in the ca.crt of {one.place} has signed {other.place}",
            "issue all certificates by one authority, or put both into every ca.crt until all are "
            "renewed; then restart kube-scheduler",
        )
        for one in found.values()
        for other in found.values()
        if not one.believes(other)
    ]
    return worst(
        results, ok(f"each of {len(found)} certificates is believed by the owners of the others")
    )


def reloaded(installation: Installation) -> Result:
    """Look whether processes could read renewed certificates."""
    results = []
    asked = 0
    for name, process in installation.processes.items():
        if isinstance(process, Missing):
            continue
        asked += 1
        if note := process.notes.get("tls"):
            results.append(warning(f"{name}: {note}", "see the log of that process"))
    if not asked:
        return unchecked("no process could be asked")
    return worst(results, ok(f"none of {asked} processes has trouble with its certificate"))


def _identities(installation: Installation) -> Mapping[str, Identity]:
    return {k: v for k, v in installation.identities.items() if not isinstance(v, Missing)}


def _services(installation: Installation) -> Iterator[tuple[str, Identity]]:
    found = _identities(installation)
    if not found:
        raise NotReadError(_unread(installation))
    return ((name, each) for name, each in found.items() if name != SCHEDULER)


def _identity(installation: Installation, name: str) -> Identity:
    if not installation.report.is_secured and name not in installation.identities:
        raise NotReadError("the gateway has no certificates")
    return known(installation.identities.get(name, Missing(f"no Secret of the {name} was found")))


def _unread(installation: Installation) -> str:
    reasons = [v.reason for v in installation.identities.values() if isinstance(v, Missing)]
    return reasons[0] if reasons else "no Secret with a certificate was found"


CHECKS = (
    Check(
        name="tls-verified",
        about="kube-scheduler verifies the gateway: with enableHTTPS and no CA it silently does "
        "not.",
        run=verified,
    ),
    Check(
        name="tls-server-name",
        about="The name that kube-scheduler expects is in the gateway's certificate.",
        run=server_name,
    ),
    Check(
        name="tls-client",
        about="kube-scheduler presents a certificate that the gateway accepts.",
        run=client_identity,
    ),
    Check(
        name="tls-names",
        about="The certificate of each service has its identity and both usages.",
        run=names,
    ),
    Check(
        name="tls-authority",
        about="Each process believes the authority that signed the certificates of the others.",
        run=authority,
    ),
    Check(
        name="tls-expiry",
        about="No certificate has expired, and more than a third of each one's life is left.",
        run=expiry,
    ),
    Check(
        name="tls-reloaded",
        about="Processes could read their renewed certificates.",
        run=reloaded,
    ),
)
