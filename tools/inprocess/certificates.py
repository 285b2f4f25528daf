"""Folders of certificates for tests, good ones and others."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cli.certs.certificates import Issued, issue, new_authority

DAY = timedelta(days=1)


def authority(name: str = "the authority") -> Issued:
    return new_authority(datetime.now(UTC), 30 * DAY, name)


def write_folder(
    folder: Path,
    signer: Issued,
    *names: str,
    begin: timedelta = timedelta(0),
    life: timedelta = DAY,
    believed: bytes | None = None,
) -> Path:
    """Write a folder for --tls; the certificate begins *begin* from now."""
    issued = issue(signer, names, datetime.now(UTC) + begin, life)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("tls.key", issued.key),
        ("tls.crt", issued.certificate),
        ("ca.crt", signer.certificate if believed is None else believed),
    ):
        temporary = folder / f".{name}"
        temporary.write_bytes(content)
        temporary.replace(folder / name)
    return folder
