"""An authority that signs client certificates: the other way, beside tokens, to say who one is.

Used by the real control plane. The standard library cannot sign, so the program openssl does it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")


class Certificate(NamedTuple):
    """A certificate and its private key: two PEM files."""

    crt: Path
    key: Path

    @property
    def user(self) -> dict[str, str]:
        """The user of a kubeconfig that shows this certificate."""
        return {"client-certificate": str(self.crt), "client-key": str(self.key)}


class Authority:
    """Signs certificates; all files are in one folder, which must exist.

    Attributes:
        crt: Its own certificate, for servers to check others with.
    """

    def __init__(self, directory: Path, name: str = "clients") -> None:
        self._directory = directory
        self._own = self._request(name, f"/CN={name}")
        self.crt = self._own.crt

    def sign(self, name: str, user: str, groups: Sequence[str] = ()) -> Certificate:
        """Return a new certificate that says who somebody is; *name* is that of the files."""
        subject = "".join([*(f"/O={group}" for group in groups), f"/CN={user}"])
        signer = (f"-CA={self._own.crt}", f"-CAkey={self._own.key}")
        return self._request(name, subject, *signer, "-addext", "extendedKeyUsage=clientAuth")

    def _request(self, name: str, subject: str, *more: str) -> Certificate:
        made = Certificate(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        files = ("-out", str(made.crt), "-keyout", str(made.key))
        _openssl("req", "-x509", *NEW_KEY, "-subj", subject, *files, *more)
        return made


def private_key(path: Path) -> None:
    """Write a new private key on the curve P-256, as PEM."""
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    assert program, "openssl is not installed: it signs the certificates of the real control plane"
    run = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
