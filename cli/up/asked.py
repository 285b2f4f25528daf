"""Which scheduler a pod asks for: one that calls Moorage, the cluster's own, or none that runs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

DEFAULT = "default-scheduler"
"""The schedulerName of pods that name none; kube-scheduler serves it without Moorage here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedulers:
    """The schedulers of the embedded cluster.

    Attributes:
        ours: The schedulerNames of the policy's profiles.
    """

    ours: tuple[str, ...]

    def serve(self, name: str) -> bool:
        """Whether a scheduler serves pods of this schedulerName."""
        return name in self.ours or name == DEFAULT

    def problem(self, name: str) -> str:
        """Return why Moorage was not asked about a pod of this schedulerName, empty if it is."""
        if name in self.ours:
            return ""
        cure = f"set spec.schedulerName: {self.ours[0]}"
        if name == DEFAULT:
            return f"schedulerName is {DEFAULT}: Moorage was not asked; {cure}"
        return f"no scheduler here serves schedulerName {name}; {cure}"

    def summary(self, names: Iterable[str]) -> Iterator[str]:
        """Yield a line for each schedulerName that Moorage does not serve; a name for each pod."""
        for name, count in sorted(Counter(names).items()):
            if name in self.ours:
                continue
            pods = "1 pod has" if count == 1 else f"{count} pods have"
            what = "Moorage was not asked" if self.serve(name) else "no scheduler here serves it"
            yield f"{pods} schedulerName {name}: {what}; set spec.schedulerName: {self.ours[0]}"
