"""Keeps a folder of certificates: `ca/` for the authority, and one folder for each identity.

Each identity's folder is what `--tls` takes, or a Secret. A second run renews what is due and
nothing else.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from cli.certs.issuing import Issued, issue, new_authority
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY, SHARE_LEFT, read_certificate
from moorage_host.tls.identities import METRICS, OPERATOR, SCHEDULER, service_identity

SERVICES = ("gateway", "filter", "scorer", "binder", "annotator")
CLIENTS = {"scheduler": SCHEDULER, "operator": OPERATOR, "metrics": METRICS}

AUTHORITY_LIFE = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """What is wanted.

    Attributes:
        namespace: Of the services, for their names in a cluster.
        further_names: DNS names and addresses that the services have as well.
        life: For how long certificates are valid.
        new_authority: Make another authority; certificates of the former one are replaced.
    """

    namespace: str = "moorage"
    further_names: tuple[str, ...] = ()
    life: timedelta = timedelta(days=90)
    new_authority: bool = False


def identities(options: CertificateOptions) -> dict[str, tuple[str, ...]]:
    """Return each identity's folder, and the names in its certificate."""
    services = {name: _service_names(name, options) for name in SERVICES}
    return services | {folder: (name,) for folder, name in CLIENTS.items()}


def keep_certificates(root: Path, options: CertificateOptions) -> dict[str, bool]:
    """Make what is missing in *root*, and renew what is due; say which were written.

    Raises:
        ConfigurationError: A file cannot be read or written.
    """
    now = datetime.now(UTC)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, written = _authority(root / "ca", now, options.new_authority)
        done = {"ca": written}
        for folder, names in identities(options).items():
            done[folder] = _is_due(root / folder, authority, names, now)
            if done[folder]:
                issued = issue(authority, names, now, options.life)
                _write(root / folder, issued, authority.certificate)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write certificates in {root}: {(error.strerror or str(error)).lower()}"
        ) from error
    return done


def write_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file in one step; nobody else may read it, before or after."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=mode, exist_ok=False)
    temporary.write_bytes(content)
    temporary.replace(path)


def _authority(folder: Path, now: datetime, replace: bool) -> tuple[Issued, bool]:
    certificate, key = folder / AUTHORITIES, folder / "ca.key"
    if not replace and certificate.exists() and key.exists():
        return Issued(certificate=certificate.read_bytes(), key=key.read_bytes()), False
    authority = new_authority(now, AUTHORITY_LIFE)
    folder.mkdir(mode=0o700, exist_ok=True)
    write_file(key, authority.key)
    write_file(certificate, authority.certificate)
    return authority, True


def _is_due(folder: Path, authority: Issued, names: Sequence[str], now: datetime) -> bool:
    """Whether a certificate is missing, of another authority, without a name, or near its end."""
    try:
        found = read_certificate(folder, now)
    except ConfigurationError:
        return True
    is_ours = found.authorities == authority.certificate
    wanted = set(_dns_names(names))
    return not is_ours or not wanted <= set(found.names) or found.share_left(now) < SHARE_LEFT


def _write(folder: Path, issued: Issued, authority: bytes) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    write_file(folder / KEY, issued.key)
    write_file(folder / CHAIN, issued.certificate)
    write_file(folder / AUTHORITIES, authority)


def _service_names(name: str, options: CertificateOptions) -> tuple[str, ...]:
    inside = (name, f"{name}.{options.namespace}", f"{name}.{options.namespace}.svc")
    local = ("localhost", "127.0.0.1", "::1")
    return (service_identity(name), *inside, *local, *options.further_names)


def _dns_names(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if not name.replace(".", "").isdecimal() and ":" not in name]


def secret_name(identity: str) -> str:
    """Return the name of the Secret of an identity, as the process mounts it."""
    return f"{identity}-tls"


def secrets(root: Path, identities: Iterable[str], namespace: str) -> str:
    """Return a Secret of type kubernetes.io/tls for each identity, in YAML."""
    return yaml.safe_dump_all(_secret(root, each, namespace) for each in identities)


def _secret(root: Path, identity: str, namespace: str) -> dict[str, Any]:
    data = {
        name: base64.b64encode((root / identity / name).read_bytes()).decode()
        for name in (CHAIN, KEY, AUTHORITIES)
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(identity),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "moorage"},
        },
        "type": "kubernetes.io/tls",
        "data": data,
    }
