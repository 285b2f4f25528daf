"""Every mistake in a policy is told with its line, its path and what to write instead.

In `mistakes.txt` each policy, after the two lines that all begin with, has what is said of it: `->`
refuses it, `~>` only warns, and without either it is in order. `test_resolve` has the plugins.
"""

from pathlib import Path

import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import Catalogue, parse, resolve
from moorage_host.policy import read as read_file
from tests.host.policy.test_resolve import CATALOGUE, HEADER

CASES = Path(__file__).with_name("mistakes.txt").read_text().strip().split("\n\n")


def told(text: str, catalogue: Catalogue = CATALOGUE) -> list[str]:
    try:
        warnings = resolve(parse(text, "p.yaml"), catalogue).warnings
    except ConfigurationError as error:
        return [f"-> {line}" for line in str(error).splitlines()]
    return [f"~> {line}" for line in warnings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.splitlines()[-1][:90])
def test_a_mistake_is_told_with_line_path_and_what_was_expected(case: str) -> None:
    lines = case.splitlines()
    said = [line for line in lines if line.startswith(("-> ", "~> "))]
    assert told(HEADER + "\n".join(lines[: len(lines) - len(said)])) == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.yaml:1: empty"),
        ("# nothing\n---\n", "p.yaml:1: empty"),
        ("- 1", "p.yaml:1: expected object, got array"),
        ("a: 1\n b: 2", "p.yaml:2: not YAML: mapping values are not allowed"),
        ("\x01", "p.yaml:1: not YAML: unacceptable character"),
        (HEADER + "---\na: 1", "p.yaml:4: a second YAML document: only one is allowed"),
        (HEADER + "x: " + "[" * 100_000, "p.yaml:3: nested more than 64 levels deep"),
        (HEADER + "x: &a [*a]", "p.yaml:3: the alias *a is within what it names"),
        ("#" * 1_048_577, "p.yaml:1: larger than 1048576 characters"),
        (
            HEADER.replace("moorage.io/v1alpha1", "kubescheduler.config.k8s.io/v1") + "profile: 1",
            'p.yaml:1: apiVersion: expected "moorage.io/v1alpha1", got str "kubescheduler.config.',
        ),
        (
            HEADER.replace("Moorage", "KubeScheduler") + "extenders: []",
            'p.yaml:2: kind: expected "MoorageConfiguration", got str "KubeSchedulerConfigura',
        ),
        (
            "kind: MoorageConfiguration",
            "p.yaml:1: field `apiVersion` is missing: write `apiVersion: moorage.io/v1alpha1`",
        ),
    ],
)
def test_what_is_no_policy_at_all_is_refused(text: str, message: str) -> None:
    (mistake,) = told(text)
    assert mistake.startswith(f"-> {message}")


def test_a_document_of_another_version_is_checked_as_far_as_it_can_be() -> None:
    version, unknown = told("apiVersion: moorage.io/v1\nkind: MoorageConfiguration\nprofile: []\n")
    assert version.startswith("-> p.yaml:1: apiVersion: ")
    assert unknown.startswith("-> p.yaml:3: profile: ")


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("args: {limit: null}", {"limit": None}),
        ("args: {a: 2020-01-01, b: 'no', c: \"017\"}", {"a": "2020-01-01", "b": "no", "c": "017"}),
        ("args: {a: 1e3, b: '1e3'}", {"a": 1000.0, "b": "1e3"}),
        ("args: {a: &x {b: [1, 2.5, true]}, c: *x}", {key: {"b": [1, 2.5, True]} for key in "ac"}),
        ("args:", {}),
    ],
)
def test_arguments_are_what_yaml_says(text: str, args: dict[str, object]) -> None:
    body = f"profiles:\n- plugins:\n  pluginConfig:\n  - name: A\n    {text}\n"
    (profile,) = parse(HEADER + body, "p.yaml").configuration.profiles
    assert profile.plugin_config[0].args == args
    assert profile.plugins.score.enabled == ()


def test_json_is_read_too() -> None:
    text = (
        '{"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration",\n "profiles": [{'
        '"pluginConfig": [{"name": "A", "args": {"x": 1e3, "y": "\\u00e9"}}]}]}'
    )
    (profile,) = parse(text, "p.json").configuration.profiles
    assert profile.plugin_config[0].args == {"x": 1000.0, "y": "é"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:1: cannot be read: No such file"):
        read_file(path)
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(
        ConfigurationError, match=r"policy\.yaml:1: cannot be read: it is not UTF-8"
    ):
        read_file(path)
    path.write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:1: larger than 1048576"):
        parse(read_file(path), str(path))
