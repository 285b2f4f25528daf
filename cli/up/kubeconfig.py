"""The kubeconfig for kubectl, at a path that stays the same from run to run."""

import fcntl
import os
from pathlib import Path
from typing import Any

import yaml

from cli.shared.gateway.options import extension
from moorage.errors import ConfigurationError
from sandbox.apiserver.server import kubeconfig as plain_kubeconfig

NAME = "moorage-up"
"""The name of cluster, user and context; a file that has no other is of an earlier run."""


def default_path() -> Path:
    """Return where the kubeconfig goes unless the user names a file."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(runtime or state) / "moorage" / "kubeconfig"


def kubeconfig(api: str, admin: str = "") -> dict[str, Any]:
    """Return what kubectl needs to reach the embedded API server at the URL *api*.

    Args:
        api: The URL.
        admin: The gateway's admin port, for `moorage explain` and others.
    """
    cluster = {"extensions": [extension(admin)]} if admin else {}
    return plain_kubeconfig(api, NAME, cluster=cluster)


class KubeconfigFile:
    """A file that this run has for itself; it is locked, so that no other run takes it.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        """Reserve the file at *path*, which may be left over from an earlier run.

        Raises:
            ConfigurationError: It is somebody else's, or cannot be written.
        """
        self.path = path.absolute()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
        try:
            self._require_ours(path)
        except ConfigurationError:
            os.close(self._file)
            raise

    def write(self, api: str, admin: str = "") -> None:
        """Write how to reach the API server at the URL *api*, and the gateway's admin port."""
        text = yaml.safe_dump(kubeconfig(api, admin), sort_keys=False)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def remove(self) -> None:
        """Remove it: the cluster is gone."""
        self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _require_ours(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"{path} belongs to another `moorage up` that runs now; "
                "name another file with --kubeconfig-out"
            ) from error
        if not _is_ours(self.path.read_bytes()):
            raise ConfigurationError(
                f"{path} was not written by `moorage up` and is left as it is; "
                "name another file with --kubeconfig-out"
            )


def reserve(chosen: Path | None) -> KubeconfigFile | None:
    """Reserve the file that the user has chosen, else the default one.

    Returns:
        The file; None if it is the default one, and not free: another `moorage up` runs.

    Raises:
        ConfigurationError: The chosen file is somebody else's, or cannot be written.
    """
    if chosen is not None:
        return KubeconfigFile(chosen)
    try:
        return KubeconfigFile(default_path())
    except ConfigurationError:
        return None


def _is_ours(content: bytes) -> bool:
    if not content.strip():
        return True
    try:
        document = yaml.safe_load(content)
        return [cluster["name"] for cluster in document["clusters"]] == [NAME]
    except (yaml.YAMLError, TypeError, KeyError, UnicodeDecodeError):
        return False
