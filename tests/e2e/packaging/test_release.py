"""The release workflow runs dry, from the tag to its page: every step that needs no network.

Actions of others and what talks to a registry are stood in for, and note what they are given. The
tests of the `build` job are collected only, as they run by themselves. `--log-cli-level=INFO` shows
each step.
"""

import hashlib
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.wheel import HOME_PAGE, ROOT
from tools.build import find
from tools.release.chart import changes

LOG = logging.getLogger(__name__)

WORKFLOW = ROOT / ".github/workflows/release.yml"
VERSION = "0.2.0"
REGISTRY = "registry.example.org/moorage"
DIGEST = f"sha256:{hashlib.sha256(b'image').hexdigest()}"
CHART_DIGEST = f"sha256:{hashlib.sha256(b'chart').hexdigest()}"

STANDS_IN = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "{log}"
case "$(basename "$0") $1" in
  "helm push") [ -f "$2" ] && echo "Digest: {digest}" >&2 ;;
  "helm "*) exec {helm} "$@" ;;
  "gh "*) for word; do case "$word" in */*) [ -f "$word" ] || exit 1 ;; esac; done ;;
esac
"""
"""Stands in for programs that reach registries, but for what helm does with files."""

PASSED_OVER = {
    *("actions/setup-python", "actions/attest", "actions/attest-build-provenance"),
    *("docker/setup-qemu-action", "docker/setup-buildx-action", "docker/login-action"),
    *("docker/build-push-action", "pypa/gh-action-pypi-publish", "sigstore/cosign-installer"),
}
"""Actions that need the network; their inputs are looked at."""

EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")


@dataclass
class Run:
    """A run of the workflow.

    Attributes:
        folder: Where its jobs work, each in a folder of its name.
        values: What expressions stand for.
        inputs: What actions were given, by their name.
    """

    folder: Path
    tagged: Path
    values: dict[str, str]
    inputs: dict[str, list[Mapping[str, str]]] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """What the stand-ins were called with."""
        return (self.folder / "calls").read_text()

    def text(self, value: object) -> str:
        """Return a text with its expressions replaced; one that nobody knows is an error."""
        return EXPRESSION.sub(lambda match: self.values[match[1]], str(value))

    def job(self, name: str, job: Mapping[str, Any]) -> None:
        """Run the steps of a job in an empty folder."""
        here = self.folder / name
        here.mkdir()
        for step in job["steps"]:
            if "uses" in step:
                self.action(step, here)
            else:
                self.script(step, here)
            used = step.get("uses", "").partition("@")[0]
            how = "stood in for" if used in PASSED_OVER else "ran"
            LOG.info("%s: %s: %s", name, how, used or step.get("name") or step["run"])
        for output, value in (job.get("outputs") or {}).items():
            self.values[f"needs.{name}.outputs.{output}"] = self.text(value)

    def action(self, step: Mapping[str, Any], here: Path) -> None:
        """Do what an action does to files, or note what it is given."""
        name = step["uses"].partition("@")[0]
        given = {key: self.text(value) for key, value in (step.get("with") or {}).items()}
        self.inputs.setdefault(name, []).append(given)
        if name == "actions/checkout":
            checked_out(self.tagged, here)
        elif name == "actions/upload-artifact":
            paths = [here / each for each in given["path"].split()]
            root = paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))
            for each in paths:
                target = self.folder / "artifacts" / given["name"] / each.relative_to(root)
                shutil.copytree(each, target, dirs_exist_ok=True)
        elif name == "actions/download-artifact":
            source = self.folder / "artifacts" / given["name"]
            shutil.copytree(source, here / given["path"], dirs_exist_ok=True)
        else:
            assert name in PASSED_OVER, name
            for pattern in given.get("subject-path", "").split():
                assert list(here.glob(pattern)), pattern
            for key in ("sbom-path", "packages-dir", "file"):
                assert key not in given or (here / given[key]).exists(), given[key]

    def script(self, step: Mapping[str, Any], here: Path) -> None:
        """Run a step's commands as the runner does."""
        output = here / ".output"
        output.write_text("")
        environment = {key: self.text(value) for key, value in (step.get("env") or {}).items()}
        shell = ["bash", "-eo", "pipefail"] if step.get("shell") else ["bash", "-e"]
        run = subprocess.run(
            [*shell, "-c", self.text(step["run"])],
            cwd=here,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MOORAGE_"))},
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "GITHUB_OUTPUT": str(output),
                "REGISTRY": REGISTRY,
                "PYTEST_ADDOPTS": "--collect-only -q -p no:cacheprovider -n 0",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert run.returncode == 0, f"{step}: {run.stdout[-3000:]}{run.stderr[-3000:]}"
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{key}"] = value


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, timeout=100)


def checked_out(source: Path, here: Path) -> None:
    """Clone the tagged tree, with the virtual environment of this one."""
    git(here, "clone", "-q", str(source), ".")
    git(here, "update-ref", "refs/remotes/origin/main", "HEAD")
    own, made = ROOT / ".venv", here / ".venv"
    made.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (made / name).symlink_to(own / name)
    for stamp in (".run", ".dev"):  # newer than what they depend on
        (made / stamp).touch()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run the workflow for a tag of this tree, whose changelog has the version."""
    folder = tmp_path_factory.mktemp("release")
    tagged, bin_folder = folder / "tagged", folder / "bin"
    git(folder, "clone", "-q", str(ROOT), str(tagged))
    changelog = tagged / "CHANGELOG.md"
    text = changelog.read_text().replace("## Unreleased\n", f"## {VERSION} - 2026-12-01\n", 1)
    changelog.write_text(text)
    git(tagged, "commit", "-qam", "Release")
    git(tagged, "tag", f"v{VERSION}")
    bin_folder.mkdir()
    for name in ("helm", "cosign", "gh"):
        program = bin_folder / name
        program.write_text(
            STANDS_IN.format(log=folder / "calls", digest=CHART_DIGEST, helm=find("helm"))
        )
        program.chmod(0o755)
    values = {
        "github.ref_name": f"v{VERSION}",
        "github.server_url": HOME_PAGE.partition("/moorage")[0],
        "github.repository": "moorage/moorage",
        "github.sha": "0" * 40,
        "github.actor": "somebody",
        "github.token": "none",
        "env.REGISTRY": REGISTRY,
        "vars.PYTHON_IMAGE": f"python@{DIGEST}",
        "steps.image.outputs.digest": DIGEST,
    }
    made = Run(folder, tagged, values)
    for name, job in yaml.safe_load(WORKFLOW.read_text())["jobs"].items():
        made.job(name, job)
    yield made
    shutil.rmtree(folder)


@pytest.mark.timeout(900)
def test_every_step_succeeds_and_what_is_published_is_signed(run: Run) -> None:
    calls = run.log.splitlines()
    (signed,) = (each for each in calls if each.startswith("cosign sign"))
    assert f"{REGISTRY}/moorage@{DIGEST}" in signed
    assert f"{REGISTRY}/charts/moorage@{CHART_DIGEST}" in signed
    (page,) = (each for each in calls if each.startswith("gh release create"))
    for file in (
        f"dist/packages/moorage-{VERSION}-py3-none-any.whl",
        f"dist/krew/kubectl-moorage-{VERSION}.tar.gz",
        "dist/krew/moorage.yaml",
        f"dist/chart/moorage-{VERSION}.tgz",
        "dist/install/second-scheduler.yaml",
        f"dist/moorage-{VERSION}.cdx.json",
    ):
        assert f" {file}" in page
    (image,) = run.inputs["docker/build-push-action"]
    assert f"HOME_PAGE={HOME_PAGE}\n" in image["build-args"]


def test_the_chart_says_what_artifact_hub_shows(run: Run) -> None:
    package = run.folder / "image/dist/chart" / f"moorage-{VERSION}.tgz"
    shown = subprocess.run(
        [find("helm"), "show", "chart", package], capture_output=True, check=True, timeout=60
    )
    chart = yaml.safe_load(shown.stdout)
    assert (chart["home"], chart["sources"]) == (HOME_PAGE, [HOME_PAGE])
    assert chart["icon"].startswith(f"{HOME_PAGE}/raw/v{VERSION}/")
    assert (ROOT / chart["icon"].removeprefix(f"{HOME_PAGE}/raw/v{VERSION}/")).exists()
    assert chart["keywords"]
    assert chart["maintainers"]
    hub = {k.removeprefix("artifacthub.io/"): v for k, v in chart["annotations"].items()}
    (image,) = yaml.safe_load(hub["images"])
    assert image["image"] == f"{REGISTRY}/moorage@{DIGEST}"
    assert hub["license"] == "Apache-2.0"
    listed = yaml.safe_load(hub["changes"])
    assert {each["kind"] for each in listed} <= {
        *("added", "changed", "deprecated", "removed", "fixed", "security")
    }
    assert all("](" not in each["description"] for each in listed)
    folder = run.folder / "image/dist/manifests/chart/moorage"
    addresses = "networkPolicy.apiServer.addresses={10.0.0.1/32}"
    linted = subprocess.run(
        [find("helm"), "lint", "--strict", folder, "--set", addresses],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert linted.returncode == 0, linted.stdout
    assert "[INFO]" not in linted.stdout


def test_every_manifest_names_the_image_by_digest(run: Run) -> None:
    package = run.folder / "image/dist/chart" / f"moorage-{VERSION}.tgz"
    addresses = "networkPolicy.apiServer.addresses={10.0.0.1/32}"
    rendered = subprocess.run(
        [find("helm"), "template", "moorage", package, "--set", addresses],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    texts = {"the chart": rendered}
    texts |= {each.name: each.read_text() for each in (run.folder / "image/dist/install").iterdir()}
    for name, text in texts.items():
        images = set(re.findall(r"image: (\S*moorage\S*)$", text, re.MULTILINE))
        assert images == {f"{REGISTRY}/moorage@{DIGEST}"}, name


def test_changes_are_plain_text_with_their_kind() -> None:
    notes = (
        "### Added\n\n- **A** does `b` ([how](docs/b.md)),\n  and c.\n- D.\n\n### Fixed\n\n- E.\n"
    )
    assert changes(notes) == [
        {"kind": "added", "description": "A does b (how), and c."},
        {"kind": "added", "description": "D."},
        {"kind": "fixed", "description": "E."},
    ]
