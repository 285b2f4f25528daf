"""Commands, options, variables, metrics and files that the documentation names exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench.__main__ import main as bench
from cli.main import main
from moorage_host.settings import Dataclass, declared_settings, parse_settings
from tests.docs.walkthroughs.page import EXERCISES, TUTORIAL
from tools.docs.pages import DOCS, ROOT, blocks, pages
from tools.docs.tables import SETTINGS

PROCESSES = {
    "gateway": "gateway",
    "services.filter": "filter and scorer",
    "services.scorer": "filter and scorer",
    "services.binder": "binder",
    "services.annotator": "annotator",
    "sandbox.apiserver": "api-server",
    "sandbox.scheduler": "kube-scheduler",
}
"""The tables of settings by the module that is run."""

KUBECTL = {
    "--all",
    *("--as", "--cascade", "--field-selector", "--flatten", "--for", "--image", "--labels"),
    *("--minify", "--overrides", "--patch", "--raw", "--replicas", "--server-side", "--sort-by"),
    *("--subresource", "--tail", "--type"),
}
CURL = {"--cacert", "--cert", "--key"}
VERIFYING = {"--certificate-identity", "--certificate-oidc-issuer", "--repo"}
REGISTRIES = {"--password-stdin", "--repository-name", "--username"}
IMAGES = {"--from", "--no-deps", "--platform", "--push", "--target", "--timestamp"}

HELM = {"--kube-version", "--namespace", "--reset-then-reuse-values", "--set", "--set-file"}
KUBEADM = {"--patches"}
KREW = {"--archive", "--manifest"}
PYTEST = {"--extender-options", "--extender-url", "--pyargs"}

FOREIGN = {
    "--dist",
    "--enable-feature",
    "--help",
    "--machines",
    "--policy-config-file",
    "--publish",
    "--quiet",
    "--require-hashes",
    "--secure-port",
    "--strict",
    *KUBECTL,
    *CURL,
    *VERIFYING,
    *IMAGES,
    *REGISTRIES,
    *HELM,
    *KREW,
    *KUBEADM,
    *PYTEST,
}
"""Options of commands that are not described by settings: other people's, and of `tools`."""

FOREIGN_MODULES = {"json.tool", "pytest", "venv"}


def classes() -> Iterator[type[Dataclass]]:
    for name in PROCESSES.values():
        yield SETTINGS[name][0]


def commands(*programs: str) -> list[tuple[str, list[str]]]:
    """Return the commands of shell blocks that start with a program, with where they stand.

    Those of pages that are run from top to bottom are left to tests/docs/walkthroughs.
    """
    found = []
    for block in blocks("sh"):
        if block.page in (TUTORIAL, EXERCISES):
            continue
        for written in block.text.replace("\\\n", " ").splitlines():
            line = written.removeprefix(".venv/bin/")
            if line.partition(" ")[0] in programs:
                found.append(
                    (
                        f"{block}: {line}",
                        shlex.split(re.split(r" (?:\||>>?) ", line)[0], comments=True),
                    )
                )
    return found


def prose() -> str:
    return "\n".join(page.read_text() for page in pages())


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder as the reader of the documentation has it before them."""
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    code = next(b.text for b in blocks("python") if b.text.startswith("# max_temperature.py"))
    for name in ("max_temperature.py", "my_score.py"):
        (tmp_path / name).write_text(code)
    shown = (ROOT / "deploy" / "demo" / "policy.yaml").read_text()
    for name in ("policy.yaml", "now.yaml", "new.yaml"):
        (tmp_path / name).write_text(shown)
    for name in ("cluster.json", "pods.yaml"):  # what `kubectl get -o json` wrote, and manifests
        (tmp_path / name).write_text("")
    legacy = (ROOT / "tests" / "data" / "legacy-policy.json").read_text()
    (tmp_path / "legacy-policy.json").write_text(legacy)
    (tmp_path / "converted").mkdir()
    (tmp_path / "converted" / "policy.yaml").write_text(shown)
    monkeypatch.chdir(tmp_path)


def test_a_moorage_command_is_understood(reader: None, subtests: pytest.Subtests) -> None:
    for where, words in commands("moorage"):
        with subtests.test(where):
            command: click.Command = main
            arguments = words[1:]
            while isinstance(command, click.Group):
                command = command.commands[arguments.pop(0)]
            command.make_context("moorage", arguments)


def test_a_command_about_policies_succeeds(reader: None, subtests: pytest.Subtests) -> None:
    for where, words in commands("moorage"):
        if words[1] != "config":
            continue
        with subtests.test(where):
            result = CliRunner().invoke(main, words[1:])
            assert result.exit_code == 0, result.output


def test_a_process_is_started_with_options_that_it_has(subtests: pytest.Subtests) -> None:
    for where, words in commands("python"):
        with subtests.test(where):
            assert words[1:3] == ["-m", "moorage_apps"], "the other names work in a clone alone"
            settings, _ = SETTINGS[PROCESSES[words[3]]]
            parse_settings(settings, words[3], words[4:], environ={})


def test_every_kind_of_command_occurs() -> None:
    assert {words[0] for _, words in commands("moorage", "python")} == {"moorage", "python"}


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z0-9-]+)", prose()))
    assert named
    assert named <= targets


def test_modules_that_are_run_exist() -> None:
    named = set(re.findall(r"python3? -m ([a-z0-9_.]+[a-z])", prose()))
    for module in named - FOREIGN_MODULES:
        paths = [root / module.replace(".", "/") for root in (ROOT, ROOT / "sdk")]
        files = [file for path in paths for file in (path / "__main__.py", path.with_suffix(".py"))]
        assert any(file.exists() for file in files), module


def test_options_exist() -> None:
    known = {each.option for cls in classes() for each in declared_settings(cls)}
    known |= {f"--no-{option.removeprefix('--')}" for option in known}
    for command in (main, *_leaves(main), bench):
        known |= {option for parameter in command.params for option in parameter.opts}
    named = set(re.findall(r"(?<![-\w])--[a-z][a-z-]+", _own_text()))
    assert named - known - FOREIGN == set()


def test_environment_variables_exist() -> None:
    known = {each.variable for cls in classes() for each in declared_settings(cls)}
    known |= {"MOORAGE_EXAMPLES", "MOORAGE_REQUIRE_ALL"}  # of tests: tests/conftest.py
    known.add("MOORAGE_HOME")  # of builds: deploy/metadata.py
    assert set(re.findall(r"MOORAGE_[A-Z_]+", prose())) - known == set()


def test_metrics_exist() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text()
    known = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.M))
    known |= {f"{name}_count" for name in known if name.endswith("_seconds")}  # of histograms
    known.add("moorage_version")  # a field of a message
    named = set(re.findall(r"moorage_(?!host\b|apps\b|pytest\b|simulate\b)[a-z_]+", prose()))
    assert named - known == set()


def test_files_and_folders_exist() -> None:
    folders = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir()))
    named = re.findall(rf"(?<![\w/.])(?:{folders})/[\w./-]+", _without_targets(_own_text()))
    made = ("bench/out/", ".venv/", "dist/")  # by commands of the page
    missing = {n for n in named if not (ROOT / n.rstrip(".")).exists() and not n.startswith(made)}
    assert {name for name in missing if "NAME" not in name and "POD" not in name} == set()


def _own_text() -> str:
    """Return the pages without what is included from elsewhere."""
    return re.sub(r"<!-- include.*?<!-- end -->", "", prose(), flags=re.DOTALL)


def _without_targets(text: str) -> str:
    """Return Markdown without what its links lead to, which test_links checks."""
    return re.sub(r"\]\([^)\s]+\)", "]", text)


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _leaves(inner)
    else:
        yield command
