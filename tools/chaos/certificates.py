"""The certificates of a campaign's processes: how they are replaced, and those that are refused."""

import ssl
from pathlib import Path

import grpc.aio

from tools.inprocess.certificates import DAY, authority, write_folder

RENEWED = ("gateway", "filter", "scorer", "binder", "scheduler")
LOOPBACK = ("localhost", "127.0.0.1")


class Certificates:
    """A folder for each identity; every process believes two authorities, as in a change of one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._signers = [authority("old"), authority("new")]
        self._believed = b"".join(signer.certificate for signer in self._signers)
        self.renew()
        for name in ("operator", "gateway"):
            self._write(root / "judge" / name, name)

    def of(self, program: str) -> Path:
        """Return the folder of a program such as "scorer-1"."""
        name = program.removeprefix("kube-").partition("-")[0]
        return self._root / name

    def for_kube_scheduler(self) -> dict[str, str]:
        """Return the tlsConfig of its extender."""
        folder = self.of("kube-scheduler")
        files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
        paths = {key: str(folder / file) for key, file in files.items()}
        return {"serverName": "moorage-gateway", **paths}

    def judge(self, name: str) -> Path:
        """Return a folder that is never replaced, for what the campaign itself asks."""
        return self._root / "judge" / name

    def renew(self) -> None:
        """Replace all certificates by those of the other authority."""
        self._signers.reverse()
        for name in RENEWED:
            self._write(self._root / name, name)

    def spoil(self) -> None:
        """Replace all certificates by some that no process may take."""
        for number, name in enumerate(RENEWED):
            self._write_bad(self._root / name, name, expired=number % 2 == 0)

    def intruders(self) -> dict[str, Path]:
        """Return folders whose certificates nobody may be let in with, by what is wrong."""
        place = self._root / "intruders"
        self._write_bad(place / "expired", "gateway", expired=True)
        self._write_bad(place / "foreign", "gateway", expired=False)
        self._write(place / "other", "filter")
        return {
            "an expired certificate": place / "expired",
            "a certificate of another authority": place / "foreign",
            "the certificate of another process": place / "other",
        }

    def _write(self, folder: Path, name: str) -> None:
        names = (f"moorage-{name}", *LOOPBACK)
        write_folder(folder, self._signers[0], *names, believed=self._believed)

    def _write_bad(self, folder: Path, name: str, *, expired: bool) -> None:
        signer = self._signers[0] if expired else authority("foreign")
        begin = -2 * DAY if expired else 0 * DAY
        names = (f"moorage-{name}", *LOOPBACK)
        write_folder(folder, signer, *names, begin=begin, believed=self._believed)


def http_context(folder: Path) -> ssl.SSLContext:
    """Return how to call an HTTP port with the certificate of a folder, good or bad."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(folder / "ca.crt")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def grpc_channel(at: str, folder: Path) -> grpc.aio.Channel:
    """Return how to call a gRPC port with the certificate of a folder, good or bad."""
    files = [(folder / name).read_bytes() for name in ("ca.crt", "tls.key", "tls.crt")]
    return grpc.aio.secure_channel(at, grpc.ssl_channel_credentials(*files))
