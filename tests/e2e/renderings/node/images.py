"""What is in the images that templates name.

`moorage` is the image that is built from deploy/Dockerfile. `kube-scheduler` has its program and
nothing else, as Kubernetes' own image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.build import find
from tools.image.isolated import Isolated

DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}
"""What container runtimes add to every image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image.

    Attributes:
        root: Its files, None for none.
        user: Who runs its programs where a template does not say.
        environment: What it sets.
        files: Further files, by their path in the container.
    """

    root: Path | None = None
    user: int = 0
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)


class Images:
    """All images that there are."""

    def __init__(self, moorage: Isolated) -> None:
        runtime = {f"/dev/{each}": Path("/dev") / each for each in DEVICES}
        self.runtime = runtime | {"/proc": Path("/proc")}
        user = int(moorage.user.partition(":")[0])
        paths = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        program = {"/usr/local/bin/kube-scheduler": find("kube-scheduler")}
        self._images = {
            "moorage": Image(root=moorage.root, user=user, environment=moorage.environment),
            "kube-scheduler": Image(environment=paths, files=program),
        }

    def find(self, name: str) -> Image:
        """Return an image by its name in a template, such as registry.k8s.io/kube-scheduler:v1.

        Raises:
            KeyError: There is none of this name.
        """
        return self._images[name.partition("@")[0].rpartition("/")[2].partition(":")[0]]
