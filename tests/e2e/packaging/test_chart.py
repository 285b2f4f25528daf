"""The chart and deploy/kustomize are one: the same objects for every option and every layout."""

from pathlib import Path

import pytest
import yaml

from tests.deploy.generate import generated
from tests.deploy.renderings.layouts import KUSTOMIZE, OPTIONS, Values, layouts
from tests.deploy.renderings.rendering import render_chart, render_kustomize, without_hashes
from tests.e2e.build import find


@pytest.fixture(scope="module")
def helm() -> Path:
    return find("helm")


def test_the_committed_kustomize_files_are_current(helm: Path) -> None:
    files = {str(path): text for path, text in generated(helm).items()}
    committed = {
        str(file.relative_to(KUSTOMIZE)): file.read_text()
        for file in KUSTOMIZE.rglob("*")
        if file.is_file()
    }
    stale = {path for path in files.keys() | committed if files.get(path) != committed.get(path)}
    assert not stale, "run `make manifests` and commit the result"


def assert_equal(helm: Path, values: Values, folder: Path) -> None:
    chart = without_hashes([document.manifest for document in render_chart(helm, values)])
    kustomize = without_hashes(render_kustomize(folder))
    assert kustomize.keys() == chart.keys()
    for key, manifest in chart.items():
        assert kustomize[key] == manifest, key


@pytest.mark.parametrize("layout", sorted(layouts()))
def test_a_layout_is_the_same_with_helm_and_with_kustomize(helm: Path, layout: str) -> None:
    assert_equal(helm, layouts()[layout], KUSTOMIZE / "overlays" / layout)


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_an_option_is_the_same_with_helm_and_with_kustomize(
    helm: Path, option: str, tmp_path: Path
) -> None:
    (tmp_path / "kustomize").symlink_to(KUSTOMIZE)
    parts = {"resources": ["kustomize/base"], "components": [f"kustomize/components/{option}"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(parts))
    assert_equal(helm, OPTIONS[option], tmp_path)
