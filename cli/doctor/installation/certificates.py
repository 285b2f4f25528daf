"""Reads the certificates of gateway and kube-scheduler from the Secrets that their pods mount."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from cli.doctor.installation.objects import CORE, Missing, Object, get
from cli.doctor.installation.pods import scheduler_in, services_in
from cli.doctor.installation.schedulers import INLINE, Scheduler
from moorage_host.kube import KubeClient
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, is_signed

GATEWAY, SCHEDULER = "gateway", "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A certificate, and the authorities that its owner believes.

    Attributes:
        place: Where it is, for people.
        names: Its DNS names and addresses.
        not_before: When it begins to be valid.
        not_after: When it expires.
        chain: The certificate and what is between it and its authority.
        authorities: The authorities.
    """

    place: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    chain: tuple[x509.Certificate, ...]
    authorities: tuple[x509.Certificate, ...]

    def believes(self, other: "Identity") -> bool:
        """Whether an authority of this one has signed another one's certificate."""
        return is_signed(other.chain, self.authorities)


Identities = Mapping[str, Identity | Missing]
"""The certificates by whose they are: "gateway", "scheduler"."""


async def read_identities(
    client: KubeClient | None, pods: Sequence[Object], schedulers: Sequence[Scheduler]
) -> Identities:
    """Read what the gateway and kube-scheduler present."""
    found: dict[str, Identity | Missing] = {}
    for scheduler in schedulers:
        if (files := _of_files(scheduler)) is not None:
            found[SCHEDULER] = files
    if client is None:
        return found
    owners = [
        (GATEWAY, pod, container)
        for pod in pods
        for service, container in services_in(pod)
        if service == GATEWAY
    ]
    owners += [
        (SCHEDULER, pod, container)
        for scheduler in schedulers
        for pod in scheduler.pods[:1]
        if (container := scheduler_in(pod)) is not None
    ]
    secrets = {
        whose: (pod["metadata"]["namespace"], secret)
        for whose, pod, container in owners
        if (secret := _secret(pod, container))
    }
    return found | {whose: await _of_secret(client, *each) for whose, each in secrets.items()}


def identity(place: str, data: Mapping[str, bytes]) -> Identity | Missing:
    """Return what tls.crt and ca.crt hold."""
    try:
        chain = x509.load_pem_x509_certificates(data[CHAIN])
        authorities = x509.load_pem_x509_certificates(data[AUTHORITIES])
    except KeyError as error:
        return Missing(f"{place} has no {error.args[0]}")
    except ValueError:
        return Missing(f"{place} holds no certificates in PEM, or damaged ones")
    return Identity(
        place=place,
        names=_names(chain[0]),
        not_before=chain[0].not_valid_before_utc,
        not_after=chain[0].not_valid_after_utc,
        chain=tuple(chain),
        authorities=tuple(authorities),
    )


async def _of_secret(client: KubeClient, namespace: str, name: str) -> Identity | Missing:
    answer = await get(client, f"{CORE}/namespaces/{namespace}/secrets/{name}")
    if isinstance(answer, Missing):
        return answer
    content = answer.get("data") or {}
    public = {key: base64.b64decode(content[key]) for key in (CHAIN, AUTHORITIES) if key in content}
    return identity(f"Secret {namespace}/{name}", public)


def _of_files(scheduler: Scheduler) -> Identity | Missing | None:
    """Return what is in the files of a configuration that are on this machine."""
    if not scheduler.is_file or isinstance(scheduler.configuration, Missing):
        return None
    tls = next((each.tls_config for each in scheduler.configuration.extenders), None)
    if tls is None or not tls.cert_file or INLINE in (tls.cert_file, tls.ca_file):
        return None
    try:
        paths = {CHAIN: Path(tls.cert_file), AUTHORITIES: Path(tls.ca_file)}
        return identity(tls.cert_file, {name: path.read_bytes() for name, path in paths.items()})
    except OSError:
        return Missing(f"{tls.cert_file} cannot be read here: run this where kube-scheduler runs")


def _secret(pod: Object, container: Object) -> str:
    """Return the Secret in a container's mounts that has the process's certificate."""
    mounted = {each["name"] for each in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] in mounted and volume["name"].endswith("tls") and volume.get("secret"):
            return str(volume["secret"]["secretName"])
    return ""


def _names(leaf: x509.Certificate) -> tuple[str, ...]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)
