"""`moorage config` reports every mistake at once; `moorage up` refuses it before it starts."""

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.cli.support import invoked as moorage
from tests.cli.support import ran
from tests.cli.up.test_up import MAX_TEMPERATURE

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"


def up(*arguments: object) -> tuple[int, str]:
    """Run `moorage up` in a process of its own, which forks; return exit code and output."""
    return asyncio.run(ran("up", "--once", *map(str, arguments)))


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "max_temperature.py"
    file.write_text(MAX_TEMPERATURE)
    return file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(HEADER)
    return file


def test_show_prints_a_valid_document_in_which_nothing_is_enabled(tmp_path: Path) -> None:
    shown = moorage("config", "show")
    assert (shown.exit_code, shown.stderr) == (0, "")
    (profile,) = yaml.safe_load(shown.stdout)["profiles"]
    assert profile == {
        "schedulerName": "moorage",
        "plugins": {point: {"enabled": []} for point in ("filter", "score", "bind")},
        "pluginConfig": [],
    }
    file = tmp_path / "shown.yaml"
    file.write_text(shown.stdout)
    assert moorage("config", "validate", file).stdout == f"{file}: valid, profiles: moorage\n"
    assert moorage("config", "show", file).stdout == shown.stdout


def test_a_given_plugin_is_enabled_without_a_policy(plugin: Path) -> None:
    shown = moorage("config", "show", "--plugin", plugin)
    (profile,) = yaml.safe_load(shown.stdout)["profiles"]
    enabled = {point: plugins["enabled"] for point, plugins in profile["plugins"].items()}
    assert enabled == {"filter": [{"name": "MaxTemperature"}], "score": [], "bind": []}
    assert shown.stderr == "Note: without --config, profile moorage enables just MaxTemperature\n"


def test_a_given_score_plugin_may_have_a_weight(tmp_path: Path, policy: Path) -> None:
    file = tmp_path / "heavy.py"
    file.write_text(
        "from moorage import ScorePlugin\nclass Heavy(ScorePlugin):\n    weight = 5\n"
        "    def score_node(self, pod, node):\n        return 1.0\n"
    )

    def weight(given: object) -> int:
        shown = yaml.safe_load(moorage("config", "show", "--plugin", given).stdout)
        (plugin,) = shown["profiles"][0]["plugins"]["score"]["enabled"]
        return int(plugin["weight"])

    assert (weight(file), weight(f"{file}=20"), weight(f"{tmp_path}=7")) == (5, 20, 7)
    refused = moorage("config", "show", policy, "--plugin", f"{file}=20")
    assert f"--plugin {file}=20: {policy} gives the weights" in refused.stderr
    for wrong in ("0", "x", "1.5", ""):
        result = moorage("config", "show", "--plugin", f"{file}={wrong}")
        assert (result.exit_code, "the weight is no integer from 1" in result.stderr) == (2, True)


def test_a_filter_has_no_weight(plugin: Path) -> None:
    result = moorage("config", "show", "--plugin", f"{plugin}=20")
    assert result.exit_code == 1
    assert f"only score plugins have a weight, and {plugin} has none" in result.stderr


def test_with_a_policy_a_plugin_that_it_does_not_enable_is_told(plugin: Path, policy: Path) -> None:
    result = moorage("config", "validate", policy, "--plugin", plugin)
    assert result.exit_code == 0
    note = (
        f"plugin MaxTemperature is enabled in no profile of {policy}: "
        "add it to plugins.multiPoint.enabled\n"
    )
    assert result.stderr == f"{policy}:1: note: {note}"
    assert moorage("config", "show", policy, "--plugin", plugin).stderr == f"Note: {note}"


def test_warnings_of_the_policy_are_told(policy: Path) -> None:
    policy.write_text(f"{HEADER}profiles:\n- pluginConfig:\n  - name: NodeGroup\n")
    result = moorage("config", "validate", policy)
    assert result.exit_code == 0
    place = f"{policy}:5: note: profiles[0].pluginConfig[0].name: "
    assert result.stderr == f"{place}plugin `NodeGroup` is configured but not enabled\n"


@pytest.mark.parametrize(
    ("code", "place", "problem"),
    [
        ("import moorage\nimport nowhere\n", ":2", "No module named 'nowhere'"),
        ("\ndef f(:\n", ":2", "SyntaxError"),
        ("\n\n1 / 0\n", ":3", "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('bye')\n", ":2", "SystemExit: bye"),
        ("x = 1\n", "", "defines no plugin: subclass moorage.FilterPlugin, ScorePlugin"),
        ("from moorage import FilterPlugin\n", "", "defines no plugin"),
    ],
)
def test_a_plugin_file_that_cannot_be_loaded_is_told_with_its_line(
    tmp_path: Path, code: str, place: str, problem: str
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(code)
    shown = moorage("config", "show", "--plugin", file)
    for exit_code, text in (up("--plugin", file), (shown.exit_code, shown.stderr)):
        assert exit_code == 1
        (line,) = text.splitlines()
        assert line.startswith(f"{file}{place}: " if place else f"moorage: {file} ")
        assert problem in line


def test_a_plugin_that_needs_arguments_asks_for_a_policy(plugin: Path) -> None:
    plugin.write_text(MAX_TEMPERATURE.replace(" = 80.0", ""))
    result = moorage("config", "show", "--plugin", plugin)
    assert result.exit_code == 1
    assert result.stderr == (
        "moorage: policy made from --plugin:8: profiles[0].plugins.multiPoint.enabled[0]: "
        "field `limit` is missing\n"
        "give arguments in a policy, --config FILE, such as:\n"
        "apiVersion: moorage.io/v1alpha1\n"
        "kind: MoorageConfiguration\n"
        "profiles:\n"
        "- schedulerName: moorage\n"
        "  plugins:\n"
        "    multiPoint:\n"
        "      enabled:\n"
        "      - name: MaxTemperature\n"
        "  pluginConfig:\n"
        "  - {name: MaxTemperature, args: {}}\n"
    )


@pytest.mark.parametrize("arguments", [("--once",), ("--nodes=3",), ("--pods=0",)])
def test_a_real_cluster_is_not_given_nodes_or_pods(tmp_path: Path, arguments: tuple[str]) -> None:
    file = tmp_path / "config"
    file.touch()
    result = moorage("up", "--kubeconfig", file, *arguments)
    assert result.exit_code == 2
    assert "--kubeconfig serves a cluster as it is" in result.stderr


def test_several_files_are_checked_whatever_is_wrong_with_one(tmp_path: Path, policy: Path) -> None:
    wrong = tmp_path / "wrong"
    enabled = "plugins: {multiPoint: {enabled: [{name: CoolBatch}]}}"
    wrong.write_text(f"{HEADER}scoreScle: 1\nprofiles:\n- {enabled}\n")
    result = moorage("config", "validate", wrong, tmp_path / "nowhere.yaml", policy)
    assert result.exit_code == 1
    assert result.stdout == f"{policy}: valid, profiles: moorage\n"
    field, plugin, missing, count = result.stderr.splitlines()
    assert field.startswith(f"{wrong}:3: scoreScle: unknown field `scoreScle`, did you mean")
    assert plugin.startswith(f"{wrong}:5: profiles[0].plugins.multiPoint.enabled[0].name: unknown")
    assert "--plugin PATH adds yours" in plugin
    assert missing.startswith(f"{tmp_path}/nowhere.yaml:1: cannot be read: No such file")
    assert count == "3 mistakes in 2 of 3 files"
