"""Every limit of the API server, with its default and unit."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one API server behaves; the defaults suit tests and demonstrations."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 lets the system choose a free one."""
    version: str = "v1.37.2+sandbox"
    """What /version answers; the form is vMAJOR.MINOR.PATCH with an optional +BUILD."""
    history: int = 8192
    """Changes kept per resource; a watch from before them is answered with 410."""
    bookmark_seconds: float = 60.0
    """How often a watch with allowWatchBookmarks gets a bookmark from an idle server."""
    watch_seconds: float = 1800.0
    """How long a watch lasts that names no timeoutSeconds."""
    max_body_bytes: int = 3 * 1024 * 1024
    """A larger request is answered with 413."""
    pages: int = 64
    """Unfinished paged lists that are kept; older continue tokens are answered with 410."""
    run_bound_pods: bool = False
    """Play the kubelet: a bound pod becomes Running."""
    run_delay_seconds: float = 0.2
    """How long after its binding a pod becomes Running, with run_bound_pods."""
    shutdown_seconds: float = 2.0
    """How long a stopping server waits for requests; watches are closed at once."""
    audit_log: Path | None = None
    """The file to which a line is added for each write; see `requests.audit`."""
    token_auth_file: Path | None = None
    """The accounts that TokenReviews know, in the form of kube-apiserver's --token-auth-file."""
