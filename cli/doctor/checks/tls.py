"""Checks certificates: who verifies whom, names, authorities, expiry."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation.certificates import SCHEDULER, Identity
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.objects import Missing, NotReadError, known
from moorage_host.tls.identities import service_identity
from moorage_host.tls.reload import SHARE_LEFT

RENEW = "renew it: `moorage certs --secrets NAMESPACE`, or see why cert-manager does not"

LOOPBACK = ("127.", "localhost", "::1")


def verified(installation: Installation) -> Iterator[Result]:
    """Look whether kube-scheduler verifies the gateway's certificate."""
    secured = installation.report.is_secured
    for entry in installation.entries:
        tls = entry.extender.tls_config
        if not entry.extender.url_prefix.startswith("https:"):
            yield from _plain(entry, secured=secured)
            continue
        if tls is not None and tls.insecure:
            yield problem(
                f"{entry.place}: tlsConfig.insecure: kube-scheduler believes any server",
                "remove it and set tlsConfig.caFile",
            )
        elif tls is None or not tls.ca_file:
            is_silent = entry.extender.enable_https
            found = problem if is_silent else warning
            effect = (
                "enableHTTPS without a CA: kube-scheduler verifies no certificate, and does not "
                "report that"
                if is_silent
                else "without tlsConfig.caFile the authorities of kube-scheduler's image count"
            )
            yield found(
                f"{entry.place}: {effect}",
                "set enableHTTPS: true, and tlsConfig.caFile to the ca.crt of the gateway's "
                "authority",
            )
        name = (tls.server_name if tls else "") or urlsplit(entry.extender.url_prefix).hostname
        gateway = installation.identities.get("gateway")
        if isinstance(gateway, Identity) and name not in gateway.names:
            yield problem(
                f"{entry.place} expects {name}; the gateway's certificate is for "
                f"{listed(gateway.names)}",
                "set tlsConfig.serverName: moorage-gateway",
            )
    yield ok("kube-scheduler verifies the gateway's certificate")


def _plain(entry: Entry, *, secured: bool) -> Iterator[Result]:
    url = entry.extender.url_prefix
    if secured:
        yield problem(
            f"{entry.place}: {url} is plain text, and the gateway has certificates",
            "write https:// with enableHTTPS and tlsConfig, as `moorage config extender` does",
        )
    elif not str(urlsplit(url).hostname).startswith(LOOPBACK):
        yield warning(
            f"{entry.place}: {url} is plain text: who reaches that port can have any pod bound",
            "give the processes certificates with `moorage certs`, and write https://",
        )


def client_identity(installation: Installation) -> Iterator[Result]:
    """Compare kube-scheduler's certificate with what the gateway accepts."""
    if not installation.report.is_secured:
        yield ok("the gateway has no certificates, so nobody needs one")
        return
    for entry in installation.entries:
        tls = entry.extender.tls_config
        if tls is None or not (tls.cert_file and tls.key_file):
            yield problem(
                f"{entry.place}: kube-scheduler presents no certificate, and the gateway ends such "
                "connections",
                "set tlsConfig.certFile and keyFile",
            )
    allowed = installation.own.scheduler_identities
    certificate = known(
        installation.identities.get(SCHEDULER, Missing("no Secret of kube-scheduler was found"))
    )
    if not set(allowed) & set(certificate.names):
        yield problem(
            f"{certificate.place} is for {listed(certificate.names)}; the gateway accepts "
            f"{', '.join(allowed)}",
            "issue it for that name, or set the gateway's --scheduler-identity",
        )
    yield ok(f"{certificate.place} is for {listed(certificate.names)}")


def names(installation: Installation) -> Iterator[Result]:
    """Look at the names and usages of each certificate, and whether the others believe it."""
    found = _identities(installation)
    for service, each in found.items():
        expected = service_identity(service)
        if service != SCHEDULER and expected not in each.names:
            yield problem(
                f"{each.place} is for {listed(each.names)}, not for {expected}",
                f"issue it with the DNS name {expected}",
            )
        if service != SCHEDULER and each.lacks:
            yield problem(
                f"the usages of {each.place} lack {' and '.join(each.lacks)}",
                "issue it with both server auth and client auth",
            )
    doubted = [
        (one.place, other.place)
        for one in found.values()
        for other in found.values()
        if not one.believes(other)
    ]
    if doubted:
        one, other = doubted[0]
        yield problem(
            f"no authority in the ca.crt of {one} has signed {other} (and {len(doubted) - 1} more)",
            "issue all certificates by one authority, or put both into every ca.crt until all are "
            "renewed; then restart kube-scheduler",
        )
    yield ok(f"each of {len(found)} certificates has its name, and the others believe it")


def expiry(installation: Installation) -> Iterator[Result]:
    """Look how long each certificate is valid."""
    try:
        found = _identities(installation)
    except NotReadError:
        yield from _expiry_of_metrics(installation)
        return
    for each in found.values():
        left = each.not_after - installation.now
        share = left / (each.not_after - each.not_before)
        if left.total_seconds() <= 0:
            yield problem(f"{each.place} expired at {each.not_after:%FT%TZ}", RENEW)
        elif installation.now < each.not_before:
            yield problem(
                f"{each.place} is not valid before {each.not_before:%FT%TZ}", "check the clocks"
            )
        elif share < SHARE_LEFT:
            yield warning(
                f"{each.place} expires at {each.not_after:%FT%TZ}: less than a third of its life "
                "is left",
                RENEW,
            )
    first = min(found.values(), key=lambda each: each.not_after)
    yield ok(f"the first of {len(found)} certificates expires at {first.not_after:%FT%TZ}")


def _expiry_of_metrics(installation: Installation) -> Iterator[Result]:
    """Take the times of expiry from metrics, where Secrets cannot be read."""
    hours = {
        name: (time - installation.now.timestamp()) / 3600
        for name, process in installation.processes.items()
        if not isinstance(process, Missing)
        and (time := process.total("moorage_tls_certificate_expiry_timestamp_seconds"))
    }
    for name, left in hours.items():
        if left <= 0:
            yield problem(f"the certificate of {name} has expired", RENEW)
    if hours:
        yield ok(f"the first certificate expires in {min(hours.values()):.0f} hours")
    elif installation.report.is_secured:
        yield unchecked("neither Secrets nor metrics say when certificates expire")
    yield ok("there are no certificates")


def _identities(installation: Installation) -> Mapping[str, Identity]:
    found = {k: v for k, v in installation.identities.items() if not isinstance(v, Missing)}
    if not found:
        reasons = [v.reason for v in installation.identities.values() if isinstance(v, Missing)]
        raise NotReadError(reasons[0] if reasons else "no Secret with a certificate was found")
    return found


CHECKS = (
    Check(
        name="tls-verified",
        about="kube-scheduler verifies the gateway, by the name in its certificate: with "
        "enableHTTPS and no CA it silently does not.",
        run=verified,
    ),
    Check(
        name="tls-client",
        about="kube-scheduler presents a certificate that the gateway accepts.",
        run=client_identity,
    ),
    Check(
        name="tls-names",
        about="Each certificate has its service's name and both usages, and is signed by an "
        "authority that the others believe.",
        run=names,
    ),
    Check(
        name="tls-expiry",
        about="No certificate has expired, and more than a third of each one's life is left.",
        run=expiry,
    ),
)
