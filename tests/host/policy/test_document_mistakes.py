"""Every mistake in a policy document is told with its line, its path and what to write instead."""

import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import parse

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
WEIGHT = "expected an integer from 0 to 2147483647"
PATH = "profiles[0].plugins"
CONFIG = "profiles[0].pluginConfig"
KNOWN = "known: apiVersion, kind, scoreScale, profiles"


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "p.yaml")
    return str(caught.value).splitlines()


def enabled(item: str) -> str:
    return f"profiles:\n- plugins:\n    score:\n      enabled:\n      - {item}\n"


def config(fields: str) -> str:
    return f"profiles:\n- pluginConfig:\n  - name: A\n    {fields}\n"


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
        (HEADER + "x: &a [*a]", "p.yaml:3: aliases make more than 100000 values or 64 levels"),
        ("#" * 1_048_577, "p.yaml:1: larger than 1048576 characters"),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: MoorageConfiguration\nprofile: 1",
            (
                'p.yaml:1: apiVersion: expected "moorage.io/v1alpha1", '
                'got str "kubescheduler.config.k8s.io/v1"'
            ),
        ),
        (
            "apiVersion: moorage.io/v1alpha1\nkind: KubeSchedulerConfiguration\nextenders: []",
            (
                'p.yaml:2: kind: expected "MoorageConfiguration", got str '
                '"KubeSchedulerConfiguration", did you mean `MoorageConfiguration`?'
            ),
        ),
        (
            "kind: MoorageConfiguration",
            "p.yaml:1: field `apiVersion` is missing: write `apiVersion: moorage.io/v1alpha1`",
        ),
    ],
)
def test_what_is_no_policy_at_all_is_refused(text: str, message: str) -> None:
    (mistake,) = mistakes(text)
    assert mistake.startswith(message)


def test_aliases_cannot_multiply_without_bound() -> None:
    levels = "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, 9))
    (mistake,) = mistakes(HEADER + "x0: &x0 [1]\n" + levels)
    assert mistake.endswith("aliases make more than 100000 values or 64 levels")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("profile: []", "p.yaml:3: profile: unknown field `profile`, did you mean `profiles`?"),
        ("colour: red", f"p.yaml:3: colour: unknown field `colour`; {KNOWN}"),
        (
            "extenders: []",
            (
                "p.yaml:3: extenders: unknown field `extenders`: "
                "this field belongs to kube-scheduler's own configuration"
            ),
        ),
        ("kind: MoorageConfiguration", "p.yaml:3: kind: the key is there twice"),
        ("scoreScale: 50", "p.yaml:3: scoreScale: expected 10 or 100 or 1000, got int 50"),
        ("scoreScale: '10'", 'p.yaml:3: scoreScale: expected 10 or 100 or 1000, got str "10"'),
        (
            "profiles:\n- plugins:\n    score:\n    - name: A",
            f"p.yaml:5: {PATH}.score: expected object, got array",
        ),
        ("profiles: {}", "p.yaml:3: profiles: expected array, got object"),
        (
            "profiles:\n- plugins:\n    preFilter: {}",
            (
                f"p.yaml:5: {PATH}.preFilter: unknown field `preFilter`: "
                "the point `filter` stands for PreFilter and Filter"
            ),
        ),
        (
            "profiles:\n- plugins:\n    queueSort: {}",
            (
                f"p.yaml:5: {PATH}.queueSort: unknown field `queueSort`: "
                "this point belongs to kube-scheduler's own configuration"
            ),
        ),
        (
            "profiles:\n- schedulerName: on",
            (
                "p.yaml:4: profiles[0].schedulerName: expected a name, got bool true; "
                'YAML reads on as true: write "on" if text is meant'
            ),
        ),
        (
            "profiles:\n- schedulerName: 017",
            (
                "p.yaml:4: profiles[0].schedulerName: 017 is ambiguous, YAML 1.1 reads 15: "
                'write 15, or "017" in quotes'
            ),
        ),
        (
            "profiles:\n- schedulerName: ''",
            'p.yaml:4: profiles[0].schedulerName: expected a name, got str ""',
        ),
        (
            "profiles:\n- on: 1",
            'p.yaml:4: profiles[0].on: a key must be a string: YAML reads on as bool; write "on"',
        ),
        (
            "profiles:\n- <<: {a: 1}",
            (
                'p.yaml:4: profiles[0]["<<"]: merge keys (<<) are not supported: '
                "repeat the fields, or use an alias for all of them"
            ),
        ),
        ("profiles:\n- ? [a]\n  : 1", 'p.yaml:4: profiles[0]["?"]: a key must be a string'),
        (enabled("A"), f'p.yaml:7: {PATH}.score.enabled[0]: expected object, got str "A"'),
        (enabled("{weight: 1}"), f"p.yaml:7: {PATH}.score.enabled[0]: field `name` is missing"),
        (
            enabled("{name: A, weigth: 1}"),
            (
                f"p.yaml:7: {PATH}.score.enabled[0].weigth: unknown field `weigth`, "
                "did you mean `weight`?"
            ),
        ),
        (
            enabled("name: A\n        weight: '5'"),
            f'p.yaml:8: {PATH}.score.enabled[0].weight: {WEIGHT}, got str "5"',
        ),
        (
            enabled("{name: A, weight: 1.5}"),
            f"p.yaml:7: {PATH}.score.enabled[0].weight: {WEIGHT}, got float 1.5",
        ),
        (
            enabled("{name: A, weight: -1}"),
            f"p.yaml:7: {PATH}.score.enabled[0].weight: {WEIGHT}, got int -1",
        ),
        (
            enabled("{name: A, weight: yes}"),
            (
                f"p.yaml:7: {PATH}.score.enabled[0].weight: {WEIGHT}, got bool true; "
                'YAML reads yes as true: write "yes" if text is meant'
            ),
        ),
        (
            enabled("{name: A, weight: 012}"),
            (
                f"p.yaml:7: {PATH}.score.enabled[0].weight: 012 is ambiguous, YAML 1.1 reads 10: "
                'write 10, or "012" in quotes'
            ),
        ),
        (
            enabled("{name: '*'}"),
            (
                f"p.yaml:7: {PATH}.score.enabled[0].name: "
                "`*` may only be disabled; enable plugins by their names"
            ),
        ),
        (
            enabled("name: A\n      - name: A"),
            (
                f'p.yaml:8: {PATH}.score.enabled[1].name: "A" is there already, '
                f"at {PATH}.score.enabled[0].name"
            ),
        ),
        (
            "profiles:\n- plugins: {score: {disabled: [{name: A, weight: 1}]}}",
            f"p.yaml:4: {PATH}.score.disabled[0].weight: unknown field `weight`; known: name",
        ),
        (config("args: [1]"), f"p.yaml:6: {CONFIG}[0].args: expected object, got array"),
        (
            config("args: {at: 12:30}"),
            (
                f"p.yaml:6: {CONFIG}[0].args.at: 12:30 is ambiguous, YAML 1.1 reads 750: "
                'write 750, or "12:30" in quotes'
            ),
        ),
        (
            config("args: {a.b/c: .inf}"),
            f'p.yaml:6: {CONFIG}[0].args["a.b/c"]: .inf is not a finite number',
        ),
        (
            config(f"args: {{a: {2**63}}}"),
            f"p.yaml:6: {CONFIG}[0].args.a: {2**63} does not fit into 64 bits",
        ),
        (config("args: {a: !x 1}"), f"p.yaml:6: {CONFIG}[0].args.a: the tag !x is not allowed"),
        (config("args: {a: !x [1]}"), f"p.yaml:6: {CONFIG}[0].args.a: the tag !x is not allowed"),
        (config("args: {a: !!int x}"), f"p.yaml:6: {CONFIG}[0].args.a: x is not !!int"),
        (
            config("failurePolicy: abort"),
            (
                f'p.yaml:6: {CONFIG}[0].failurePolicy: expected "Abort" or "Ignore", '
                'got str "abort", did you mean `Abort`?'
            ),
        ),
        (
            config("timeBudget: 500"),
            f'p.yaml:6: {CONFIG}[0].timeBudget: expected a duration such as "500ms", got int 500',
        ),
        (
            config("timeBudget: 5 s"),
            (
                f'p.yaml:6: {CONFIG}[0].timeBudget: expected a duration such as "500ms", "5s" '
                'or "1m30s", got "5 s"'
            ),
        ),
        (
            config("timeBudget: 0s"),
            f"p.yaml:6: {CONFIG}[0].timeBudget: must be above 0s and at most 1m",
        ),
        (
            config("timeBudget: 61s"),
            f"p.yaml:6: {CONFIG}[0].timeBudget: must be above 0s and at most 1m",
        ),
        (
            config("args: {}\n  - name: A"),
            f'p.yaml:7: {CONFIG}[1].name: "A" is there already, at {CONFIG}[0].name',
        ),
        (
            "profiles:\n- schedulerName: a\n- plugins: {}",
            "p.yaml:5: profiles[1]: field `schedulerName` is missing: there are several profiles",
        ),
        (
            "profiles:\n- schedulerName: a\n- schedulerName: a",
            (
                'p.yaml:5: profiles[1].schedulerName: "a" is there already, '
                "at profiles[0].schedulerName"
            ),
        ),
    ],
)
def test_a_mistake_is_told_with_line_path_and_what_was_expected(body: str, message: str) -> None:
    assert mistakes(HEADER + body) == [message]


def test_all_mistakes_are_told_in_the_order_of_their_lines() -> None:
    body = enabled("{name: A, weight: x}") + "  pluginConfig:\n  - nam: B\nscoreScal: 1\n"
    assert mistakes(HEADER + body) == [
        f'p.yaml:7: {PATH}.score.enabled[0].weight: {WEIGHT}, got str "x"',
        f"p.yaml:9: {CONFIG}[0]: field `name` is missing",
        f"p.yaml:9: {CONFIG}[0].nam: unknown field `nam`, did you mean `name`?",
        "p.yaml:10: scoreScal: unknown field `scoreScal`, did you mean `scoreScale`?",
    ]


def test_a_document_of_another_version_is_checked_as_far_as_it_can_be() -> None:
    text = "apiVersion: moorage.io/v1\nkind: MoorageConfiguration\nprofile: []\n"
    assert [mistake.partition(": ")[2].partition(":")[0] for mistake in mistakes(text)] == [
        "apiVersion",
        "profile",
    ]


def test_two_mistakes_of_one_place_are_both_there() -> None:
    body = "profiles:\n- pluginConfig:\n  - name: A\n    a b: 1\n    c d: 2\n  - {}\n"
    found = mistakes(HEADER + body)
    assert len(found) == 3
    assert found[2].endswith("pluginConfig[1]: field `name` is missing")
