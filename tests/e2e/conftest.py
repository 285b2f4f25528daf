"""Nothing of this folder runs unless a real control plane is wanted: `make e2e`."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.certs.certificates import keep_certificates
from tests.deploy.wheel import HOME_PAGE
from tools.build import is_there
from tools.image.build import ROOT, Layout, base_archive, build, missing_tools, run
from tools.image.isolated import Isolated

WANTED = bool(os.environ.get("MOORAGE_E2E"))
NO_KARPENTER = WANTED and not is_there("karpenter")

collect_ignore_glob = [] if WANTED else ["*test_*.py"]
collect_ignore = ["autoscaler"] if NO_KARPENTER else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what is left out: `make nightly` builds Karpenter, `make e2e` does not."""
    if NO_KARPENTER:
        left_out = "tests/e2e/autoscaler is left out: python -m tools.build karpenter"
        terminalreporter.write_line(left_out)


@pytest.fixture(scope="session")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Layout, Layout]:
    """Build the image twice, the second time from a copy of the files under another path."""
    if missing := missing_tools():
        pytest.skip(f"{', '.join(missing)} not installed")
    folder = tmp_path_factory.mktemp("images")
    copy = folder / "copy"
    copy.mkdir()
    listed = run("git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    base_archive(run)  # made once, for both
    with ThreadPoolExecutor() as pool:
        builds = [
            pool.submit(build, folder / "first", home=HOME_PAGE),
            pool.submit(build, folder / "second", context=copy, home=HOME_PAGE),
        ]
    for each in builds:
        each.result()
    return Layout(folder / "first"), Layout(folder / "second")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folders that `moorage certs` writes."""
    root = tmp_path_factory.mktemp("certs")
    keep_certificates(root)
    return root


@pytest.fixture(scope="session")
def image(layouts: tuple[Layout, Layout], tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    return Isolated.unpacked(layouts[0], tmp_path_factory.mktemp("unpacked"))
