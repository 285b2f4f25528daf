"""`moorage config validate` reports every mistake at once, as editors and CI read it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main

VALID = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"

MISTAKES = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
scoreScale: 50
extenders: []
profiles:
- schedulerName: a
  plugins:
    multiPoint:
      enabled:
      - name: NodeGrup
      - {weight: 3}
      - name: "*"
    filter:
      enabled:
      - name: ImageLocality
    score:
      enabled:
      - {name: ImageLocality, weight: "5"}
    permit: {}
  pluginConfig:
  - name: NodeGroup
    failurePolicy: ignore
    timeBudget: 90s
    args: {lable: a}
  - name: SafeBalance
    args: {inFlight: -1}
- schedulerName: a
- schedulerName: b
  schedulerName: c
"""

EXPECTED = [
    (3, "scoreScale", "expected 10 or 100 or 1000, got int 50"),
    (4, "extenders", "unknown field `extenders`: this field belongs to kube-scheduler"),
    (10, "multiPoint.enabled[0].name", "unknown plugin `NodeGrup`"),
    (11, "multiPoint.enabled[1]", "field `name` is missing"),
    (12, "multiPoint.enabled[2].name", "`*` may only be disabled"),
    (15, "filter.enabled[0].name", "plugin `ImageLocality` has no filter part"),
    (18, "score.enabled[0].weight", "expected an integer from 0 to 2147483647"),
    (19, "plugins.permit", "unknown field `permit`"),
    (22, "failurePolicy", 'expected "Abort" or "Ignore", got str "ignore"'),
    (23, "timeBudget", "must be above 0s and at most 1m"),
    (24, "args.lable", "unknown field `lable`, did you mean `label`?"),
    (26, "args.inFlight", "expected"),
    (27, "profiles[1].schedulerName", '"a" is there already'),
    (29, "profiles[2].schedulerName", "the key is there twice"),
]


def validate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["config", "validate", *map(str, arguments)])


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "wrong.yaml"
    file.write_text(MISTAKES)
    return file


@pytest.fixture
def right(tmp_path: Path) -> Path:
    file = tmp_path / "right.yaml"
    file.write_text(VALID)
    return file


def test_every_kind_of_mistake_is_reported_at_once_in_order(wrong: Path) -> None:
    result = validate(wrong)
    *mistakes, count = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (1, "")
    for (number, path, message), mistake in zip(EXPECTED, mistakes, strict=True):
        assert re.match(rf"{re.escape(f'{wrong}:{number}: ')}\S*{re.escape(path)}: ", mistake)
        assert message in mistake
    assert count == f"{len(EXPECTED)} mistakes in {wrong}"


def test_several_files_are_checked_whatever_is_wrong_with_one(
    tmp_path: Path, wrong: Path, right: Path
) -> None:
    result = validate(wrong, tmp_path / "nowhere.yaml", right)
    assert result.exit_code == 1
    assert result.stdout == f"{right}: valid, profiles: moorage\n"
    *mistakes, count = result.stderr.splitlines()
    assert mistakes[-1].startswith(f"{tmp_path}/nowhere.yaml:1: cannot be read: No such file")
    assert count == f"{len(mistakes)} mistakes in 2 of 3 files"


def test_files_without_mistakes_are_only_listed(tmp_path: Path, right: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(VALID + "profiles: [{schedulerName: b}]\n")
    result = validate(right, other)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{right}: valid, profiles: moorage\n{other}: valid, profiles: b\n"


def test_a_required_argument_that_is_missing_is_one_mistake_beside_others(tmp_path: Path) -> None:
    plugin = tmp_path / "needs.py"
    plugin.write_text(
        "from moorage import Arguments, FilterPlugin, Node, Pod, Rejection\n"
        "class Needs(FilterPlugin):\n"
        "    class Args(Arguments):\n"
        "        one: int\n"
        "        other: int\n"
        "    def filter_node(self, pod: Pod, node: Node) -> Rejection | None: ...\n"
    )
    policy = tmp_path / "policy.yaml"
    enabled = "plugins: {multiPoint: {enabled: [{name: Needs}, {name: Nope}]}}"
    policy.write_text(f"{VALID}profiles:\n- {enabled}\n")
    result = validate(policy, "--plugin", plugin)
    found = [line.partition(": profiles[0].plugins.")[2] for line in result.stderr.splitlines()]
    assert found[:2] == [
        "multiPoint.enabled[0]: field `one` is missing",
        "multiPoint.enabled[0]: field `other` is missing",
    ]
    assert found[2].startswith("multiPoint.enabled[1].name: unknown plugin `Nope`")
    assert result.stderr.endswith(f"3 mistakes in {policy}\n")


def test_a_plugin_that_is_not_built_in_leads_to_the_option(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    enabled = "plugins: {multiPoint: {enabled: [{name: CoolBatch}]}}"
    policy.write_text(f"{VALID}profiles:\n- {enabled}\n")
    assert "--plugin PATH adds yours" in validate(policy).stderr
