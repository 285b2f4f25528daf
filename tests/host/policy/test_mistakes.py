"""Every mistake in a policy is told with its line, its path and what to write instead.

In `mistakes.txt` each policy, after the two lines that all begin with, has what is said of it: `->`
refuses it, `~>` only warns, and without either it is in order. `test_resolve` has the plugins.
"""

from pathlib import Path

import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import Catalogue, parse, resolve
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
