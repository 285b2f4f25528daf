"""Becomes a container's process: own mounts and root, a pod's network, the user that is wanted.

Run as a script with the path of a JSON file, so that it starts fast and imports nothing of ours.
The kernel kills the process when the test process dies.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x20000, 0x4000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38

_libc = ctypes.CDLL(None, use_errno=True)


def main(spec: dict[str, Any]) -> None:
    """Set everything up and replace this process."""
    network = os.open(spec["network"], os.O_RDONLY)
    _call("setns", network, CLONE_NEWNET)
    _call("unshare", CLONE_NEWNS | CLONE_NEWUTS)
    socket.sethostname(spec["hostname"])
    _mount(None, Path("/"), None, MS_REC | MS_PRIVATE)
    root = _root(Path(spec["folder"]), spec["image"])
    for path, target in spec["links"].items():
        link = _inside(root, path)
        if not link.is_symlink():
            link.symlink_to(target)
    for mount in spec["mounts"]:
        _bind(Path(mount["source"]), _inside(root, mount["path"]), read_only=mount["read_only"])
    if spec["read_only"]:
        _mount(None, root, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chroot(root)
    os.chdir(spec["directory"])
    os.setgroups(spec["groups"])
    os.setresgid(*[spec["group"]] * 3)
    os.setresuid(*[spec["user"]] * 3)
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the change of the user has reset it
    command = spec["command"]
    os.environ["PATH"] = spec["environment"]["PATH"]
    os.execvpe(command[0], command, spec["environment"])


def _root(folder: Path, image: str | None) -> Path:
    """Return a root that can be written to, with the files of an image below."""
    _mount("container", folder, "tmpfs", 0, "mode=755")
    root, upper, work = (folder / name for name in ("root", "upper", "work"))
    for each in (root, upper, work):
        each.mkdir()
    if image:
        layers = f"lowerdir={image},upperdir={upper},workdir={work}"
        _mount("container", root, "overlay", 0, layers)
    else:
        _mount(str(root), root, None, MS_BIND)
    return root


def _inside(root: Path, path: str) -> Path:
    inside = root / path.lstrip("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    return inside


def _bind(source: Path, target: Path, *, read_only: bool) -> None:
    if source.is_dir():
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.touch()
    _mount(str(source), target, None, MS_BIND | MS_REC)
    if read_only:
        _mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def _mount(source: str | None, target: Path, kind: str | None, flags: int, data: str = "") -> None:
    words = [each.encode() if each else None for each in (source, str(target), kind)]
    _call("mount", *words, flags, data.encode() or None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
