"""What is in the images that the renderings name: files of this machine in an otherwise empty root.

`moorage` is the interpreter with this tree and what is installed beside it, at their own paths;
tests/e2e/packaging proves the image itself. `kube-scheduler` has its program and nothing else.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.build import find
from tests.scenarios.planes import ROOT

DEVICES = ("null", "zero", "full", "random", "urandom")
STANDARD = {"/dev/fd": "/proc/self/fd", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}
SYSTEM = ("bin", "sbin", "lib", "lib64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A root file system: what is mounted where, and the PATH."""

    mounts: dict[str, Path]
    path: str
    links: dict[str, str] = field(default_factory=dict)


def image(name: str) -> Image:
    """Return the content of an image by its name in a template.

    Raises:
        ValueError: No image of this name is known.
    """
    product = name.partition("@")[0].rpartition("/")[2].partition(":")[0]
    devices = {f"/dev/{each}": Path("/dev") / each for each in DEVICES}
    devices["/proc"] = Path("/proc")
    if product == "kube-scheduler":
        program = {"/usr/local/bin/kube-scheduler": find("kube-scheduler")}
        path = "/usr/local/bin:/usr/bin:/bin"
        return Image(mounts=devices | program, path=path, links=STANDARD)
    if product == "moorage":
        return moorage_image(ROOT, devices)
    raise ValueError(f"no image is known that is called {name}")


def moorage_image(tree: Path, devices: dict[str, Path]) -> Image:
    mounts, links = {"/usr": Path("/usr")}, dict(STANDARD)
    for name in SYSTEM:
        folder = Path("/") / name
        if folder.is_symlink():
            links[str(folder)] = str(folder.readlink())
        elif folder.exists():
            mounts[str(folder)] = folder
    for each in (tree, Path(sys.base_prefix), Path(sys.prefix)):
        if not any(each.is_relative_to(known) for known in mounts.values()):
            mounts[str(each)] = each
    programs = Path(sys.executable).parent
    return Image(mounts=mounts | devices, path=f"{programs}:/usr/bin:/bin", links=links)
