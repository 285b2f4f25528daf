"""The wheel has all that runs, and works where others have modules of the same names."""

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.wheel import ROOT, build_wheel, environment_with, run

EPOCH = "1700000000"
APPLICATIONS = ("gateway", "services", "sandbox", "cli")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `python` and `moorage` of an environment with the wheel."""
    return environment_with(wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, with modules of the names that Moorage's have."""
    for name in APPLICATIONS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported')\n")
    return tmp_path


def sources() -> Iterator[str]:
    for root, place in (("sdk", ""), *((name, f"moorage_apps/{name}/") for name in APPLICATIONS)):
        for path in (ROOT / root).rglob("*"):
            if path.suffix in {".py", ".pyi", ".typed"}:
                yield f"{place}{path.relative_to(ROOT / root)}"


def test_the_wheel_has_every_module_and_no_name_of_others_at_the_top(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"moorage", "moorage_apps", "moorage_host", "moorage_pytest"}
    assert set(sources()) <= set(names)
    assert not [name for name in names if "tests" in name or name.endswith(".pyc")]


def test_the_same_sources_in_another_folder_give_the_same_wheel(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = run("git", "ls-files", "-co", "--exclude-standard", "-z", folder=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            copy = tmp_path / "copy" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())  # of now, with the usual mode
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    (tmp_path / "wheel").mkdir()
    again = build_wheel(tmp_path / "wheel", tmp_path / "copy")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()
    years = {entry.date_time[0] for entry in zipfile.ZipFile(again).infolist()}
    assert years == {time.gmtime(int(EPOCH)).tm_year}


def test_the_command_schedules_pods_outside_of_the_repository(programs: Path, folder: Path) -> None:
    out = run(programs / "moorage", "up", "--once", "--nodes=3", "--pods=3", folder=folder)
    assert "3 of 3 pods bound" in out


def test_a_new_plugin_runs_there(programs: Path, folder: Path) -> None:
    run(programs / "moorage", "new-plugin", "OfMyOwn", folder=folder)
    pods = ("up", "--once", "--nodes=2", "--pods=1")
    out = run(programs / "moorage", *pods, "--plugin", "of_my_own.py", folder=folder)
    assert "1 of 1 pods bound" in out


@pytest.mark.parametrize("process", ["gateway", "services.filter", "sandbox.scheduler"])
def test_each_process_can_be_started_by_its_module(
    programs: Path, folder: Path, process: str
) -> None:
    usage = run(programs / "python", "-m", "moorage_apps", process, "--help", folder=folder)
    assert usage.startswith(f"usage: python -m moorage_apps {process} ")
    assert "--log-format" in usage


def test_the_command_and_the_library_have_the_same_version(programs: Path, folder: Path) -> None:
    version = run(programs / "moorage", "--version", folder=folder).split()[-1]
    code = "import importlib.metadata, moorage; print(importlib.metadata.version('moorage'))"
    assert run(programs / "python", "-c", code, folder=folder).strip() == version


def test_importing_the_library_imports_none_of_the_services_dependencies(
    programs: Path, folder: Path
) -> None:
    code = (
        "import sys, moorage, moorage.testing\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    )
    heavy = ("grpc", "google", "aiohttp", "kubernetes_asyncio", "structlog", *APPLICATIONS)
    assert run(programs / "python", "-c", code, *heavy, folder=folder).strip() == "[]"
