"""Every setting of the API server, with its default and unit."""

from dataclasses import dataclass
from pathlib import Path

from moorage_host.process.lifecycle import ProcessSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """How one API server behaves; those with a sentence are options of the process too."""

    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(0, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    kubeconfig_out: Path | None = setting(None, "Where to write a kubeconfig for kubectl.")
    run_bound_pods: bool = setting(False, "Play the kubelet: bound pods become Running.")
    run_controllers: bool = setting(
        False, "Make the pods of Deployments, ReplicaSets, StatefulSets and Jobs."
    )
    audit_log: Path | None = setting(
        None,
        "File that gets a line for each write: an Event of audit.k8s.io/v1, with the body of "
        "Bindings.",
    )
    token_auth_file: Path | None = setting(
        None,
        "File of accounts for TokenReviews, as kube-apiserver reads it: lines of "
        'token,user,uid,"group,group".',
    )
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
    run_delay_seconds: float = 0.2
    """How long after its binding a pod becomes Running, with run_bound_pods."""
    shutdown_seconds: float = 2.0
    """How long a stopping server waits for requests; watches are closed at once."""
