"""Runs programs of an unpacked image as Kubernetes does: unprivileged, on a read-only tree."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tools.image.build import Layout

TMPFS = "tmpfs"
"""What is mounted on a folder that can be written to."""

TMP: Mapping[str, str | Path] = MappingProxyType({"/tmp": TMPFS})

# In namespaces of its own: little can be written to, and programs gain no rights.
SCRIPT = """
set -eu
root=$1
[ -z "$2" ] || echo "$2" > /proc/sys/kernel/hostname
shift 2
mount --bind "$root" "$root"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mount -o remount,ro tmpfs "$root/dev"
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do
  if [ "$1" = tmpfs ]; then
    mount -t tmpfs -o mode=1777,size=64m,nosuid,nodev tmpfs "$root$2"
  else
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "${root}${2%/*}"; touch "$root$2"; fi
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro,nosuid,nodev "$root$2"
  fi
  shift 2
done
shift
mount -o remount,bind,ro,nosuid,nodev "$root"
exec env -i "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolated:
    """An image's file system.

    Attributes:
        root: Where it is unpacked.
        user: Who runs the programs, as UID:GID.
        environment: What the image sets.
    """

    root: Path
    user: str
    environment: Mapping[str, str]

    @classmethod
    def unpacked(cls, layout: Layout, folder: Path) -> "Isolated":
        """Unpack an image into *folder*."""
        root = folder / "root"
        root.mkdir()
        layout.unpack(root)
        environment = dict(entry.split("=", 1) for entry in layout.config["Env"])
        return cls(root=root, user=layout.config["User"], environment=environment)

    def command(
        self,
        *words: str,
        mounts: Mapping[str, str | Path] = TMP,
        user: str = "",
        groups: str = "",
        hostname: str = "",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> list[str]:
        """Return how to run a program of the image on this machine.

        Args:
            *words: The program and its arguments.
            mounts: What is found at which path, read-only, or `TMPFS`.
            user: Who runs it instead of the image's user.
            groups: Further groups, with commas between.
            hostname: What it calls the machine, as a pod its own name; this machine's if left out.
            environment: What is set beside what the image sets.
        """
        tools = {name: shutil.which(name) for name in ("unshare", "setpriv", "sh", "chroot")}
        assert all(tools.values()), tools
        # What lies above other mounts comes first.
        ordered = sorted(mounts.items(), key=lambda mount: mount[0].count("/"))
        return [
            *(str(tools["unshare"]), "--mount", "--uts", "--propagation=private"),
            *(str(tools["setpriv"]), "--no-new-privs", str(tools["sh"]), "-c", SCRIPT, "sh"),
            *(str(self.root), hostname),
            *(str(part) for path, source in ordered for part in (source, path)),
            "--",
            *(f"{name}={value}" for name, value in {**self.environment, **environment}.items()),
            *(str(tools["chroot"]), f"--userspec={user or self.user}", f"--groups={groups}"),
            *(str(self.root), *words),
        ]

    def run(self, *words: str, mounts: Mapping[str, str | Path] = TMP) -> str:
        """Run a program of the image to its end; return what it wrote."""
        command = self.command(*words, mounts=mounts)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout
