"""The kubeconfig for kubectl, at a path that stays the same from run to run."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.shared.gateway.options import extension
from moorage.errors import ConfigurationError
from moorage.files import load_kubeconfig
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


@contextmanager
def reserved(chosen: Path | None) -> Iterator[Path | None]:
    """Keep the file that the user has chosen, else the default one, while the block lasts.

    It is locked, so that no other run takes it, and removed in the end. It may be left over from an
    earlier run. What is given is its path; None if it is the default one, and not free: another
    `moorage up` runs.

    Raises:
        ConfigurationError: The chosen file is somebody else's, or cannot be written.
    """
    path = (chosen or default_path()).absolute()
    try:
        file = _locked(path)
    except ConfigurationError:
        if chosen:
            raise
        file = None
    try:
        yield None if file is None else path
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            os.close(file)


def _locked(path: Path) -> int:
    another = "name another file with --kubeconfig-out"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_ours(path):
            return file
        problem = f"{path} was not written by `moorage up` and is left as it is; {another}"
    except BlockingIOError:
        problem = f"{path} belongs to another `moorage up` that runs now; {another}"
    os.close(file)
    raise ConfigurationError(problem)


def _is_ours(path: Path) -> bool:
    if not path.stat().st_size:
        return True
    try:
        (document,) = load_kubeconfig(path)
        return [cluster["name"] for cluster in document["clusters"]] == [NAME]
    except (ConfigurationError, ValueError, TypeError, KeyError):
        return False
