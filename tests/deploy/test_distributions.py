"""The wheel and the source distribution: the same bytes from each build, with all licences."""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest
import yaml

from tests.deploy.wheel import APPLICATIONS, ROOT

HOME = "https://git.example.org/team/moorage"
VENDORED = "vendor"
"""What a folder with files of others is called."""

FOREIGN = re.compile(
    rb"/\*!|@license|Copyright|SPDX-License-Identifier|Licensed under", re.IGNORECASE
)


def build(source: Path, folder: Path, *targets: str) -> None:
    """Build distributions, as a release does."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "MOORAGE_HOME": HOME}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    targets = tuple(part for target in targets for part in ("-t", target))
    subprocess.run([*command, *targets], cwd=source, env=environment, check=True, timeout=100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist", "wheel")
    return folder


@pytest.fixture(scope="module")
def wheel(folder: Path) -> zipfile.ZipFile:
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def sources() -> Iterator[str]:
    for root, place in (("sdk", ""), *((name, f"moorage_apps/{name}/") for name in APPLICATIONS)):
        for path in (ROOT / root).rglob("*"):
            if path.suffix in {".py", ".pyi", ".typed"}:
                yield f"{place}{path.relative_to(ROOT / root)}"


def test_the_wheel_has_every_module_and_no_name_of_others_at_the_top(
    wheel: zipfile.ZipFile,
) -> None:
    names = wheel.namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"moorage", "moorage_apps", "moorage_host", "moorage_pytest"}
    assert set(sources()) <= set(names)
    assert not [name for name in names if "tests" in name or name.endswith(".pyc")]


def test_the_source_distribution_builds_the_same_wheel_byte_by_byte(
    folder: Path, tmp_path: Path
) -> None:
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as tar:
        tar.extractall(tmp_path, filter="data")
    build(tmp_path / source.name.removesuffix(".tar.gz"), tmp_path, "wheel")
    (first,), (second,) = folder.glob("*.whl"), tmp_path.glob("*.whl")
    assert second.read_bytes() == first.read_bytes()


def test_an_index_accepts_and_renders_them(folder: Path) -> None:
    twine = str(Path(sys.executable).parent / "twine")
    check = [twine, "check", "--strict", *map(str, folder.iterdir())]
    run = subprocess.run(check, capture_output=True, text=True, check=False, timeout=100)
    assert run.returncode == 0, run.stdout
    assert run.stdout.count("PASSED") == 2


def test_links_of_the_readme_lead_to_the_files_of_the_version(metadata: Message) -> None:
    readme = metadata.get_payload()
    assert isinstance(readme, str)
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(targets) > 10
    start = f"{HOME}/blob/v{metadata['Version']}/"
    assert [each for each in targets if not each.startswith((start, "https://", "#"))] == []
    own = [each.removeprefix(start).partition("#")[0] for each in targets if start in each]
    assert [path for path in own if not (ROOT / path).exists()] == []
    assert f"Changelog, {start}CHANGELOG.md" in metadata.get_all("Project-URL", ())


def test_each_file_of_others_is_named_with_its_licence(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    """A file of others is in a folder `vendor`, whose LICENSES is with the wheel's licences."""
    licences = {
        path: wheel.read(name).decode()
        for path in metadata.get_all("License-File", ())
        for name in wheel.namelist()
        if name.endswith(f".dist-info/licenses/{path}")
    }
    assert {"LICENSE", "NOTICE"} <= licences.keys()
    names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    vendored = [Path(name) for name in names if VENDORED in Path(name).parts[:-1]]
    assert vendored
    for path in vendored:
        if path.name != "LICENSES":
            source = path.relative_to("moorage_apps").with_name("LICENSES").as_posix()
            assert path.name in licences[source], f"{source} does not name {path.name}"
            assert path.name in licences["NOTICE"]
    ours = [name for name in names if Path(name) not in vendored]
    found = [name for name in ours if name.endswith((".js", ".css", ".html", ".svg"))]
    assert found
    assert [name for name in found if FOREIGN.search(wheel.read(name))] == []


def test_the_licence_expression_names_what_the_files_have(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    assert metadata["License-Expression"] == "Apache-2.0 AND MIT"
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0" in licence
    (text,) = (n for n in wheel.namelist() if n.endswith("vendor/LICENSES") and "dist-info" in n)
    assert wheel.read(text).count(b"The MIT License") == 1


def test_the_chart_has_the_same_version(metadata: Message) -> None:
    chart = yaml.safe_load((ROOT / "deploy/chart/moorage/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (metadata["Version"],) * 2
