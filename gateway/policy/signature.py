"""What makes pods equal: the fields that the plugins of their profile read.

Computed for every pod, so it is compiled once for a policy; see `gateway.policy.dependencies`.
"""

from collections.abc import Sequence

from moorage.models import Pod, encode
from moorage.plugin.pod_fields import reader


class Signature:
    """Reads some fields of pods; keeps the result for the newest pod."""

    def __init__(self, fields: Sequence[str]) -> None:
        """Read *fields*, and always the profile."""
        self.fields = tuple(fields)
        self._readers = [reader(field) for field in fields]
        self._prefix = encode(self.fields)
        self._newest: tuple[Pod, bytes] | None = None

    def of(self, pod: Pod) -> bytes:
        """Return the signature of *pod*; pods with the same one are equal."""
        if self._newest is None or self._newest[0] is not pod:
            parts = [read(pod) for read in self._readers]
            self._newest = pod, self._prefix + encode((pod.spec.scheduler_name, parts))
        return self._newest[1]
