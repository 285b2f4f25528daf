"""Reads the certificates of each process: from the Secrets that its pods mount."""

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from cli.doctor.installation.objects import CORE, Missing, Object, get
from cli.doctor.installation.pods import scheduler_in, services_in
from cli.doctor.installation.schedulers import INLINE, Scheduler
from moorage_host.kube import KubeClient
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY, is_signed, missing_usages

SCHEDULER = "scheduler"
"""The name of kube-scheduler's own certificate among the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A certificate of an installation, and the authorities that its owner believes.

    Attributes:
        place: Where it is, for people.
        names: Its DNS names and addresses.
        not_before: When it begins to be valid.
        not_after: When it expires.
        lacks: The usages that it needs and does not allow.
        chain: The certificate and what is between it and its authority.
        authorities: The authorities.
    """

    place: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    lacks: tuple[str, ...]
    chain: tuple[x509.Certificate, ...]
    authorities: tuple[x509.Certificate, ...]

    def believes(self, other: "Identity") -> bool:
        """Whether an authority of this one has signed another one's certificate."""
        return is_signed(other.chain, self.authorities)


Identities = Mapping[str, Identity | Missing]
"""The certificates by whose they are: "gateway", "filter", "scheduler" ..."""


async def read_identities(
    client: KubeClient | None, pods: Sequence[Object], schedulers: Sequence[Scheduler]
) -> Identities:
    """Read the Secret of each service that runs, and what kube-scheduler presents."""
    secrets: dict[str, tuple[str, str]] = {}
    for pod in pods:
        namespace = pod["metadata"]["namespace"]
        for service, container in services_in(pod):
            if name := _secret(pod, container):
                secrets[service] = namespace, name
    files: dict[str, Identity | Missing] = {}
    for scheduler in schedulers:
        mounted = next((_scheduler_secret(pod) for pod in scheduler.pods), "")
        if mounted:
            secrets[SCHEDULER] = scheduler.pods[0]["metadata"]["namespace"], mounted
        elif (found := _of_files(scheduler)) is not None:
            files[SCHEDULER] = found
    if client is None:
        return files
    read = await asyncio.gather(*(_of_secret(client, *each) for each in secrets.values()))
    return dict(zip(secrets, read, strict=True)) | files


def identity(place: str, data: Mapping[str, bytes]) -> Identity | Missing:
    """Return what tls.crt and ca.crt hold; the key is not looked at."""
    try:
        chain = x509.load_pem_x509_certificates(data[CHAIN])
        authorities = x509.load_pem_x509_certificates(data[AUTHORITIES])
    except KeyError as error:
        return Missing(f"{place} has no {error.args[0]}")
    except ValueError:
        return Missing(f"{place} holds no certificates in PEM, or damaged ones")
    leaf = chain[0]
    return Identity(
        place=place,
        names=tuple(_names(leaf)),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        lacks=tuple(missing_usages(leaf)),
        chain=tuple(chain),
        authorities=tuple(authorities),
    )


async def _of_secret(client: KubeClient, namespace: str, name: str) -> Identity | Missing:
    answer = await get(client, f"{CORE}/namespaces/{namespace}/secrets/{name}")
    if isinstance(answer, Missing):
        return answer
    data = {
        key: base64.b64decode(value)
        for key, value in (answer.get("data") or {}).items()
        if key != KEY
    }
    return identity(f"Secret {namespace}/{name}", data)


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


def _scheduler_secret(pod: Object) -> str:
    container = scheduler_in(pod)
    return _secret(pod, container) if container is not None else ""


def _names(leaf: x509.Certificate) -> Iterable[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)
