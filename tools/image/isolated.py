"""Runs programs of an unpacked image as Kubernetes does: unprivileged, on a read-only tree."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.image.build import Layout

# In a mount namespace of its own: only /tmp can be written to, and programs gain no rights.
SCRIPT = """
set -eu
root=$1 inputs=$2
shift 2
mount --bind "$root" "$root"
mount --bind "$inputs" "$root/etc/moorage"
mount -o remount,bind,ro,nosuid,nodev "$root/etc/moorage"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -o remount,ro tmpfs "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777,size=64m,nosuid,nodev tmpfs "$root/tmp"
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
        inputs: A folder that programs find as /etc/moorage.
    """

    root: Path
    user: str
    environment: Mapping[str, str]
    inputs: Path

    @classmethod
    def unpacked(cls, layout: Layout, folder: Path) -> "Isolated":
        """Unpack an image into *folder*, and make what a container runtime mounts on."""
        root, inputs = folder / "root", folder / "inputs"
        root.mkdir()
        inputs.mkdir()
        layout.unpack(root)
        (root / "etc" / "moorage").mkdir()
        environment = dict(entry.split("=", 1) for entry in layout.config["Env"])
        return cls(root=root, user=layout.config["User"], environment=environment, inputs=inputs)

    def command(self, *words: str) -> list[str]:
        """Return how to run a program of the image on this machine."""
        tools = {name: shutil.which(name) for name in ("unshare", "setpriv", "sh", "chroot")}
        assert all(tools.values()), tools
        paths = [str(self.root), str(self.inputs)]
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return [
            *(str(tools["unshare"]), "--mount", "--propagation=private"),
            *(str(tools["setpriv"]), "--no-new-privs", str(tools["sh"]), "-c", SCRIPT, "sh"),
            *(*paths, *settings),
            *(str(tools["chroot"]), f"--userspec={self.user}", "--groups=", str(self.root)),
            *words,
        ]

    def run(self, *words: str) -> str:
        """Run a program of the image to its end; return what it wrote."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout
