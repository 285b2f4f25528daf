"""Makes a small Debian with Python: what the image is built from where no registry is reachable."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tools.build import cache_root

SUITE = "bookworm"
PACKAGES = ("python3-venv", "ca-certificates", "libstdc++6")
MIRROR = "http://deb.debian.org"
LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
KEPT_SECONDS = 7 * 24 * 3600.0  # then it is made again, for Debian's security updates


def base_archive(run: Callable[..., str]) -> Path:
    """Return its file system as a tar file, made at most a week ago."""
    made = cache_root() / f"python-{SUITE}.tar"
    if made.exists() and time.time() - made.stat().st_mtime < KEPT_SECONDS:
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    partial = made.with_name(f".{os.getpid()}-{made.name}")
    try:
        run(
            *("mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(PACKAGES)}"),
            *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
            *(SUITE, str(partial)),
            f"deb {MIRROR}/debian {SUITE} main",
            f"deb {MIRROR}/debian-security {SUITE}-security main",
        )
        partial.replace(made)
    finally:
        partial.unlink(missing_ok=True)
    return made
