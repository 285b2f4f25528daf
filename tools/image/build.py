"""Builds deploy/Dockerfile with buildah: no container engine and no registry is needed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

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


class Layout:
    """One image."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def digest(self) -> str:
        """The digest of the image's manifest."""
        (entry,) = json.loads((self._folder / "index.json").read_text())["manifests"]
        return str(entry["digest"])

    @cached_property
    def manifest(self) -> Any:
        """Which blobs the image has."""
        return json.loads(self._blob(self.digest).read_text())

    @cached_property
    def config(self) -> Any:
        """User, environment, command and labels."""
        return json.loads(self._blob(self.manifest["config"]["digest"]).read_text())["config"]

    @property
    def layers(self) -> list[str]:
        """The digests of the layers."""
        return [layer["digest"] for layer in self.manifest["layers"]]

    @property
    def compressed(self) -> int:
        """The bytes of the layers as a registry keeps them."""
        return sum(layer["size"] for layer in self.manifest["layers"])

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Give every file, folder and link of every layer."""
        for layer in self.layers:
            with tarfile.open(self._blob(layer)) as archive:
                yield from archive

    def unpack(self, folder: Path) -> None:
        """Write the file system into a folder, with owners and modes."""
        for layer in self.layers:
            words = ("tar", "-xpf", self._blob(layer), "--numeric-owner", "-C", folder)
            subprocess.run(words, check=True)

    def _blob(self, digest: str) -> Path:
        return self._folder / "blobs" / digest.replace(":", "/")


ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/python"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
INSIDE = "/run/build"  # where the build finds what it may use of this machine
PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


class BuildError(Exception):
    """The image cannot be built; the message says what to do."""


def build(out: Path, *, python_image: str = "", context: Path = ROOT, home: str = "") -> None:
    """Write the image as an OCI layout into *out*, which is replaced.

    Args:
        out: A folder.
        python_image: What the build starts from; by default made here, of Debian's packages.
        context: The tree that is built.
        home: The address of the repository's page, which the image names.

    Raises:
        BuildError: A tool is missing, or a step fails.
    """
    _require()
    with tempfile.TemporaryDirectory(prefix="moorage-image-", dir="/var/tmp") as temporary:
        store = Store(Path(temporary))
        try:
            store.build(python_image or store.base(), context, home)
            shutil.rmtree(out, ignore_errors=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            store.run("push", "-q", "moorage", f"oci:{out}:moorage")
        finally:
            store.empty()


class Store:
    """Containers and images of one build; nothing else on the machine sees them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, *words: str) -> str:
        """Run buildah.

        Raises:
            BuildError: It fails.
        """
        where = (f"--root={self._folder / 'store'}", f"--runroot={self._folder / 'run'}")
        return run("buildah", *where, "--storage-driver=vfs", *words)

    def base(self) -> str:
        """Make an image of Debian's packages with Python; return its name."""
        container = self.run("from", "scratch").strip()
        self.run("add", "-q", container, str(base_archive(run)), "/")
        self.run("commit", "-q", container, BASE)
        self.run("rm", container)
        return BASE

    def build(self, python_image: str, context: Path, home: str) -> None:
        """Run the steps of the Dockerfile."""
        deploy = context / "deploy"
        arguments = {
            "PYTHON_IMAGE": python_image,
            "SOURCE_DATE_EPOCH": commit("%ct"),
            "VERSION": version(context),
            "REVISION": commit("%H"),
            "HOME_PAGE": home,
        }
        volumes = {str(self._pip_settings()): "/etc/pip.conf"}
        volumes |= {str(BUNDLE): f"{INSIDE}/ca.crt"} if BUNDLE.exists() else {}
        self.run(
            *("build", "--isolation=chroot", f"--timestamp={commit('%ct')}", "-t", "moorage"),
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(f"--volume={here}:{there}:ro" for here, there in volumes.items()),
            *(f"--ignorefile={deploy / 'Dockerfile.dockerignore'}", "-f"),
            *(str(deploy / "Dockerfile"), str(context)),
        )

    def empty(self) -> None:
        """Remove everything, for the folder to be removable."""
        self.run("rm", "-a")
        self.run("rmi", "-a", "-f")

    def _pip_settings(self) -> Path:
        """Write how pip reaches the package index on this machine."""
        lines = [f"{name} = {value}" for name, value in pip_options().items()]
        lines += [f"cert = {INSIDE}/ca.crt"] if BUNDLE.exists() else []
        file = self._folder / "pip.conf"
        file.write_text("\n".join(("[global]", *lines, "")))
        return file


def pip_options() -> dict[str, str]:
    """Return which package index pip uses on this machine, and how."""
    listed = run(sys.executable, "-m", "pip", "config", "list")
    return dict(re.findall(rf"\.({'|'.join(PIP_OPTIONS)})='(.*)'", listed))


def commit(what: str) -> str:
    """Return a property of the commit that is checked out, as git's format names it."""
    return run("git", "-C", str(ROOT), "log", "-1", f"--format={what}").strip()


def version(context: Path) -> str:
    """Return the version that the wheel gets."""
    project = tomllib.loads((context / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def run(*command: str) -> str:
    """Run a command; return what it wrote on stdout.

    Raises:
        BuildError: It fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise BuildError(f"{' '.join(command[:3])} ... failed:\n{tail}")
    return done.stdout


def missing_tools() -> list[str]:
    """Return what building needs and this machine lacks, by the names of Debian's packages."""
    missing = [tool for tool in ("buildah", "mmdebstrap", "git") if not shutil.which(tool)]
    return missing + ([] if KEYRING.exists() else [KEYRING.stem])


def _require() -> None:
    if missing := missing_tools():
        names = " ".join(missing)
        raise BuildError(
            f"{names} not found. On Debian and Ubuntu: apt-get install {names}. With a container "
            "engine: docker build -f deploy/Dockerfile ."
        )
    if os.geteuid():
        raise BuildError("run it as root, or with a container engine: see docs/reference/image.md")
