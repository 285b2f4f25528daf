"""Whoever builds the image gives the Dockerfile what its labels are made of."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.deploy.wheel import HOME_PAGE
from tools.image.build import ROOT, Store, commit, version

STAGE = (ROOT / "deploy/Dockerfile").read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
BUILDAH = """\
#!/bin/sh
printf '%s\\n' "$@" > "$0.words"
"""


def labels(given: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with these arguments; a Dockerfile expands variables as sh does."""
    defaults = dict(re.findall(r"^ARG (\w+)=(.*)$", STAGE, re.M))
    (pairs,) = re.findall(r"^LABEL (.*)$", STAGE, re.M)
    shown = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {pairs}"],
        env={**defaults, **given},
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    named = (line.split("=", 1) for line in shown.stdout.splitlines())
    return {name.removeprefix("org.opencontainers.image."): value for name, value in named}


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the arguments that `make image` gives buildah, which a script stands in for."""
    program = tmp_path / "buildah"
    program.write_text(BUILDAH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    Store(tmp_path).build("python:3.13", ROOT, HOME_PAGE)
    words = (tmp_path / "buildah.words").read_text()
    return dict(re.findall(r"^--build-arg=(\w+)=(.*)$", words, re.M))


def test_make_image_labels_the_image_with_its_page_and_its_documentation(
    given: Mapping[str, str],
) -> None:
    found = labels(given)
    assert found["source"] == found["url"] == HOME_PAGE
    assert (found["version"], found["revision"]) == (version(ROOT), commit("%H"))
    page = found["documentation"].removeprefix(f"{HOME_PAGE}/blob/v{version(ROOT)}/")
    assert (ROOT / page).is_file()


def test_a_release_gives_the_same_arguments(given: Mapping[str, str]) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["image"]["steps"]
    (built,) = (each["with"] for each in steps if "build-args" in each.get("with", {}))
    names = {line.partition("=")[0] for line in built["build-args"].splitlines()}
    assert names == set(given)


def test_without_the_address_of_the_page_nothing_is_linked() -> None:
    found = labels({})
    assert {found[name] for name in ("source", "url", "documentation")} == {""}
