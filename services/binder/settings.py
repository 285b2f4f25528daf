"""The settings of the binder service."""

from dataclasses import dataclass
from pathlib import Path

from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting
from services.binder.binding.limits import BindLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class BinderSettings(BindLimits, ServerSettings):
    """Settings of the binder service."""

    max_concurrent_rpcs: int = 20
    """A gateway needs up to 5 calls, and twice as many while its certificate changes."""
    max_message_bytes: int = 6 << 20
    """Bytes; a gateway sends states in parts of 2 MiB, which may be longer by one object."""
    kubeconfig: Path | None = setting(
        None,
        "How to reach the API server; without it, by the pod's service account, KUBECONFIG or "
        "~/.kube/config.",
    )
    plugin: tuple[Path, ...] = setting((), "A Python file or folder with plugins; repeatable.")
    bind_timeout: float = 60.0
    """Seconds for a bind at most. A gateway gives it what is left of its --http-timeout, which is
    shorter."""
    answer_margin: float = 0.1
    """Seconds before the caller's deadline at which it gets an answer, known outcome or not."""
