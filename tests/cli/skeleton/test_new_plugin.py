"""`moorage new-plugin`: what it writes, and under which names."""

from pathlib import Path

import pytest
import yaml

from tests.cli.support import invoked as moorage

LONG = "A" + 29 * "b"


FORMS = [
    ("filter", "node"),
    ("filter", "batch"),
    ("score", "node"),
    ("score", "batch"),
    ("bind", "permit"),
    ("bind", "node"),
]


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_the_skeleton_is_a_plugin_of_its_kind(tmp_path: Path, kind: str, form: str) -> None:
    result = moorage("new-plugin", "OfMyOwn", tmp_path, "--kind", kind, "--form", form)
    file, test = tmp_path / "of_my_own.py", tmp_path / "test_of_my_own.py"
    assert result.stdout.splitlines()[:2] == [f"wrote {file}", f"wrote {test}"]
    shown = moorage("config", "show", "--plugin", file)
    (profile,) = yaml.safe_load(shown.stdout)["profiles"]
    enabled = {point for point, each in profile["plugins"].items() if "OfMyOwn" in str(each)}
    assert enabled == {kind}


def test_a_filter_asked_node_by_node_is_what_one_gets_without_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert moorage("new-plugin", "OfMyOwn").stdout.startswith("wrote of_my_own.py\n")
    assert "def filter_node(" in (tmp_path / "of_my_own.py").read_text()


@pytest.mark.parametrize(
    ("name", "plugin", "file"),
    [
        ("max-temperature", "MaxTemperature", "max_temperature.py"),
        ("max_temperature", "MaxTemperature", "max_temperature.py"),
        ("GPUSpread2", "GPUSpread2", "gpu_spread_2.py"),
        ("warm", "Warm", "warm.py"),
    ],
)
def test_a_name_may_be_written_in_any_of_the_usual_ways(
    tmp_path: Path, name: str, plugin: str, file: str
) -> None:
    assert moorage("new-plugin", name, tmp_path).exit_code == 0
    assert f"class {plugin}(FilterPlugin):" in (tmp_path / file).read_text()
    assert f"import OTHER_GROUP, {plugin}\n" in (tmp_path / f"test_{file}").read_text()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", '"" cannot be the name of a plugin: write up to 30 letters and digits'),
        ("max temperature", "cannot be the name of a plugin"),
        ("../max", "cannot be the name of a plugin"),
        ("7up", "cannot be the name of a plugin"),
        (LONG + "b", "write up to 30 letters and digits"),
        ("Json", "json.py would hide Python's own json: choose a longer name"),
        ("class", "class.py would hide Python's own class"),
        ("moorage", "moorage.py would hide Python's own moorage"),
        ("NodeName", "there is a filter plugin NodeName already, and two of one name are refused"),
    ],
)
def test_a_name_that_will_not_do_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    result = moorage("new-plugin", name, tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("moorage: ")
    assert problem in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bind_plugin_is_not_asked_about_many_nodes(tmp_path: Path) -> None:
    result = moorage("new-plugin", "OfMyOwn", tmp_path, "--kind", "bind", "--form", "batch")
    assert result.exit_code == 2
    assert "a bind plugin is asked about one pod and node: omit --form batch" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "options"),
    [
        ("of_my_own.py", ()),
        ("test_of_my_own.py", ()),
        ("pyproject.toml", ("--package",)),
        ("README.md", ("--package",)),
    ],
)
def test_nothing_is_written_over(tmp_path: Path, there: str, options: tuple[str, ...]) -> None:
    (tmp_path / there).write_text("precious")
    result = moorage("new-plugin", "OfMyOwn", tmp_path, *options)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"moorage: {tmp_path / there} is there already: ")
    assert {file.name for file in tmp_path.iterdir()} == {there}
    assert (tmp_path / there).read_text() == "precious"


def test_a_project_goes_into_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = moorage("new-plugin", "MaxTemperature", "--package")
    assert result.stdout.startswith("wrote max-temperature/src/max_temperature/__init__.py\n")
