"""Collects the image's root file system: an environment, its Python, and their shared libraries.

The build stage of the Dockerfile runs it: python3 rootfs.py ENVIRONMENT FOLDER. No shell, package
manager or pip gets in, whatever image the build starts from. It needs nothing but Python, glibc's
ldd and ldconfig; where dpkg knows a library, its entry and its licence are kept for scanners.
"""

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

USER = 65532
UNUSED = shutil.ignore_patterns(
    *("__pycache__", "test", "tests", "*.pyi", "*.pxd", "*.h", "*.a", "include"),
    *("site-packages", "dist-packages", "config-*", "ensurepip", "sitecustomize.py"),
    *("idlelib", "lib2to3", "pydoc_data", "tkinter", "turtledemo"),
    *("_ctypes_test.*", "_test*.so", "_xx*.so", "xxlimited*", "nis.*", "readline.*"),
)
UNUSED_HERE = shutil.ignore_patterns(
    *("__pycache__", "test", "tests", "*.pyi", "*.pxd", "*.h", "*.a", "include", "f2py")
)
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
STATUS = Path("/var/lib/dpkg/status")


def main(environment: Path, root: Path) -> None:
    """Fill *root*.

    Raises:
        SystemExit: The environment needs a library that is not there.
    """
    _top_level(root)
    standard = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(standard, _in(root, standard), ignore=UNUSED)
    shutil.copytree(environment, _in(root, environment), symlinks=True, ignore=UNUSED_HERE)
    for link in environment.glob("bin/python*"):
        _copy(link, root)
    (site,) = _in(root, environment).glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"{environment / 'packages'}\n")
    for library in _libraries(root, environment):
        _copy(library, root)
    _configure_loader(root)
    _note_packages(root, environment)
    compiled = compileall.compile_dir(
        root,
        quiet=1,
        maxlevels=99,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
    )
    if not compiled:
        sys.exit(f"{root}: some module does not compile, see above")


def _top_level(root: Path) -> None:
    """Make the folders and files that every Linux process expects."""
    root.mkdir(parents=True)
    for name in ("lib", "lib32", "lib64", "libx32"):
        if (path := Path("/", name)).is_symlink():
            (root / name).symlink_to(path.readlink())
            (root / path.readlink()).mkdir(parents=True, exist_ok=True)
    for name in ("dev", "etc", "proc", "sys", "tmp"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(f"moorage:x:{USER}:{USER}::/tmp:/none\n")
    (root / "etc/group").write_text(f"moorage:x:{USER}:\n")
    for file in (CERTIFICATES, Path("/etc/os-release")):
        if file.exists():
            _copy(file.resolve(), root)
            _link(file, root)


def _libraries(root: Path, environment: Path) -> list[Path]:
    """Return the shared libraries that the programs and modules in *root* are linked with."""
    found: set[Path] = set()
    for file in list(_binaries(root)):
        here = Path("/", file.relative_to(root))
        run = subprocess.run(["ldd", here], capture_output=True, text=True, check=False)
        missing = re.findall(r"(\S+) => not found", run.stdout)
        if missing and here.is_relative_to(environment):
            sys.exit(f"{here} needs {', '.join(missing)}, which the build image lacks")
        if (
            missing
        ):  # a module of the standard library such as _tkinter, which could not load here either
            file.unlink()
            continue
        found.update(map(Path, re.findall(r"(/\S+) \(0x", run.stdout)))
    found.update(file for path in list(found) for file in path.parent.glob("libgcc_s.so.1"))
    return sorted(path for path in found if not path.is_relative_to(environment))


def _binaries(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def _in(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _link(path: Path, root: Path) -> None:
    """Repeat a symbolic link in *root*, unless it is a file there or a link already."""
    target = _in(root, path)
    if path.is_symlink() and not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.readlink())


def _copy(path: Path, root: Path) -> None:
    """Copy a file, with the links that lead to it."""
    while path.is_symlink():
        _link(path, root)
        path = Path(os.path.normpath(path.parent / path.readlink()))
    target = _in(root, path)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def _configure_loader(root: Path) -> None:
    """Let the loader find libraries outside of its default folders, such as /usr/local/lib."""
    shutil.copytree("/etc/ld.so.conf.d", root / "etc/ld.so.conf.d", dirs_exist_ok=True)
    shutil.copy2("/etc/ld.so.conf", root / "etc/ld.so.conf")
    ldconfig = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin") or "ldconfig"
    subprocess.run([ldconfig, "-X", "-r", root], check=True)
    shutil.rmtree(root / "var/cache", ignore_errors=True)


def _note_packages(root: Path, environment: Path) -> None:
    """Keep dpkg's entries of the files' packages where scanners of images look for them."""
    if not STATUS.exists():
        return
    entries = {
        line.partition(": ")[2]: entry
        for entry in STATUS.read_text().split("\n\n")
        for line in entry.splitlines()[:1]
    }
    folder = _in(root, STATUS).with_name("status.d")
    folder.mkdir(parents=True)
    for name in _packages(root, environment):
        (folder / name).write_text(entries[name].strip() + "\n")
        licence = Path("/usr/share/doc", name, "copyright")
        if licence.exists():
            _copy(licence.resolve(), root)


def _packages(root: Path, environment: Path) -> list[str]:
    """Return which packages the files come from; dpkg may know a file without its /usr."""
    files = (Path("/", file.relative_to(root)) for file in root.rglob("*") if file.is_file())
    names = [str(file) for file in files if not file.is_relative_to(environment)]
    names += [name.removeprefix("/usr") for name in names if name.startswith("/usr/lib/")]
    run = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"^([^:\s]+)(?::\S+)?: /", run.stdout, re.M)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
