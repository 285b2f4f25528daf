"""The chart and deploy/kustomize are one: the same objects for every option and every layout."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.config.entries import VERBS
from cli.config.extender import extender_weight
from tools.build import find
from tools.manifests.generate import generated
from tools.manifests.layouts import CHART, KUSTOMIZE, OPTIONS, UPON, Values, layouts
from tools.manifests.plugins import FILE, names, table, verbs_of
from tools.manifests.rendering import render_chart, render_kustomize, without_hashes


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
    assert (CHART / FILE).read_text() == table(), "run `make manifests` and commit the result"


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
    names = filter(None, (UPON.get(option), option))
    components = [f"kustomize/components/{name}" for name in names]
    parts = {"resources": ["kustomize/base"], "components": components}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(parts))
    assert_equal(helm, OPTIONS[option], tmp_path)


def entries(helm: Path, values: Values) -> list[dict[str, Any]]:
    """Return the extender entries that the chart makes."""
    (text,) = (
        document.manifest["data"]["kube-scheduler-config.yaml"]
        for document in render_chart(helm, values)
        if document.key.name == "kube-scheduler"
    )
    found: list[dict[str, Any]] = yaml.safe_load(text)["extenders"]
    return found


def enabling(*plugins: str) -> Values:
    enabled = [{"name": name} for name in plugins]
    return {"policy": {"profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}]}}


def verbs(entry: dict[str, Any]) -> list[str]:
    return [verb for verb in VERBS if f"{verb}Verb" in entry]


def all_verbs(found: list[dict[str, Any]]) -> list[str]:
    return [verb for entry in found for verb in verbs(entry)]


def test_kube_scheduler_calls_the_verbs_that_the_policy_needs(helm: Path) -> None:
    # Two plugins at a time, so that Helm does not have to run for each.
    known = names()
    for pair in zip(known[::2], known[1::2], strict=False):
        assert all_verbs(entries(helm, enabling(*pair))) == verbs_of(pair), pair


def test_binds_have_an_entry_of_their_own_that_is_never_ignorable(helm: Path) -> None:
    values = {**enabling("OneNodePerPipelineRun"), "extender": {"ignorable": True}}
    cycles, binds = entries(helm, values)
    assert (verbs(cycles), cycles["ignorable"]) == (["filter", "preempt"], True)
    assert (verbs(binds), binds["ignorable"]) == (["bind"], False)
    assert binds["tlsConfig"] == cycles["tlsConfig"]


@pytest.mark.parametrize("scale", [10, 100, 1000])
def test_the_weight_is_the_one_that_the_command_prints(helm: Path, scale: int) -> None:
    profiles = enabling("ImageLocality")["policy"]["profiles"]
    (entry,) = entries(helm, {"policy": {"scoreScale": scale, "profiles": profiles}})
    assert entry["weight"] == extender_weight(scale)


def test_plugins_that_the_chart_does_not_know_may_need_every_verb(helm: Path) -> None:
    assert all_verbs(entries(helm, enabling("OfMyOwn"))) == list(VERBS)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        (["nonsense=1"], ["additional properties 'nonsense' not allowed"]),
        (["filter.replica=1", "layout=own"], ["at '/filter'", "at '/layout'"]),
        (["policy.profiles[0].plugin=1"], ["at '/policy/profiles/0'"]),
        (["layout=control-plane"], ["gateway.clusterIP: layout control-plane needs"]),
        (
            [
                "layout=control-plane",
                "gateway.clusterIP=10.96.0.9",
                "policy.profiles[0].plugins.bind.enabled[0].name=DecisionAnnotation",
            ],
            ["controlPlane.ownPods:", "for DecisionAnnotation", "plain-scheduler"],
        ),
        (["layout=sidecar", "highAvailability.enabled=true"], ["highAvailability.enabled:"]),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    helm: Path, values: list[str], places: list[str]
) -> None:
    given = [word for value in values for word in ("--set", value)]
    command = [str(helm), "template", "moorage", str(CHART), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for place in places:
        assert place in done.stderr


def test_the_tag_of_the_installation_page_is_a_number_for_helm(helm: Path) -> None:
    command = [str(helm), "template", "moorage", str(CHART), "--set", "image.tag=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "image: moorage:1\n" in done.stdout, done.stderr


def test_own_pods_never_wait_for_moorage(helm: Path) -> None:
    for name, values in layouts().items():
        for document in render_chart(helm, values):
            if document.key.kind == "Deployment" and document.key.namespace == "moorage":
                pod = document.manifest["spec"]["template"]["spec"]
                assert pod["schedulerName"] in ("default-scheduler", "plain-scheduler"), name
