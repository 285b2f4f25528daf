"""Policy documents: how they are read, their schema, and the whole that comes of one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import ConfigurationError
from moorage_host.policy import (
    Document,
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    decode_effective,
    default_document,
    encode_effective,
    parse,
)
from moorage_host.policy import read as read_file
from moorage_host.policy.checks import schema_problems

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"


def read(body: str) -> Document:
    return parse(HEADER + body, "p.yaml")


def config(fields: str) -> str:
    return f"profiles:\n- pluginConfig:\n  - name: A\n    {fields}\n"


def test_a_full_document_is_read() -> None:
    document = read("""
scoreScale: 1000
profiles:
- schedulerName: batch
  plugins:
    multiPoint: {enabled: [{name: A, weight: 2}], disabled: [{name: "*"}]}
    score: {enabled: [{name: B}]}
  pluginConfig:
  - name: A
    args: {label: "on", deep: {x: [1, 2.5, null, true]}}
    failurePolicy: Ignore
    timeBudget: 1m
- schedulerName: web
""")
    configuration = document.configuration
    assert configuration.score_scale == 1000
    batch, web = configuration.profiles
    assert (batch.scheduler_name, web.scheduler_name) == ("batch", "web")
    assert batch.plugins.multi_point.enabled[0].weight == 2
    assert batch.plugins.multi_point.disabled[0].name == "*"
    assert batch.plugins.score.enabled[0].weight == 0
    (a,) = batch.plugin_config
    assert a.args == {"label": "on", "deep": {"x": [1, 2.5, None, True]}}
    assert (a.failure_policy, a.time_budget_seconds) == ("Ignore", 60.0)


def test_json_is_read_too() -> None:
    text = (
        '{"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration",\n "profiles": [{'
        '"pluginConfig": [{"name": "A", "args": {"x": 1e3, "y": "\\u00e9"}}]}]}'
    )
    (profile,) = parse(text, "p.json").configuration.profiles
    assert profile.plugin_config[0].args == {"x": 1000.0, "y": "é"}


def test_a_single_profile_may_go_without_a_name() -> None:
    assert read("profiles:\n- {}\n").configuration.profiles[0].scheduler_name == "moorage"


def test_fields_with_nothing_after_the_colon_are_absent() -> None:
    document = read("profiles:\n- plugins:\n    score:\n      enabled:\n  pluginConfig:\n")
    assert document.configuration.profiles[0].plugins.score.enabled == ()


def test_a_null_among_the_arguments_is_kept() -> None:
    (profile,) = read(config("args: {limit: null}")).configuration.profiles
    assert profile.plugin_config[0].args == {"limit": None}


def test_an_alias_stands_for_the_whole_value() -> None:
    first, second = read("""profiles:
- schedulerName: a
  plugins: &common {score: {enabled: [{name: A}]}}
- schedulerName: b
  plugins: *common
""").configuration.profiles
    assert first.plugins == second.plugins


def test_dates_and_quoted_words_stay_text() -> None:
    (profile,) = read(config("args: {a: 2020-01-01, b: 'no', c: \"017\"}")).configuration.profiles
    assert profile.plugin_config[0].args == {"a": "2020-01-01", "b": "no", "c": "017"}


@given(st.text(alphabet=st.sampled_from("ab:{}[]-,*&!|>'\"\n\t #?%<~0.9"), max_size=40))
def test_no_text_fails_in_another_way_than_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(text, "p.yaml")


@given(st.text(alphabet=st.sampled_from("ab:{}[]-,*&!|>'\"\n\t #?%<~0.9"), max_size=40))
def test_no_arguments_fail_in_another_way_than_a_configuration_error(text: str) -> None:
    try:
        document = read(config(f"args: {{a: {text} }}"))
    except ConfigurationError:
        return
    assert document.configuration.profiles[0].plugin_config[0].args is not None


def test_a_file_is_read_and_named_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEADER + "profile: []\n")
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:3: profile: unknown field"):
        parse(read_file(path), str(path))
    path.write_text(HEADER)
    assert parse(read_file(path), str(path)).source == str(path)


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


def test_without_a_file_there_is_a_default_document() -> None:
    assert default_document().configuration.profiles == ()
    assert default_document().configuration.score_scale == 100


def policy(**changes: object) -> EffectivePolicy:
    fields = {"name": "A", "failurePolicy": "Abort", "timeBudgetSeconds": 1.0, **changes}
    plugin = msgspec.convert(fields, EffectivePlugin)
    return EffectivePolicy(profiles=(EffectiveProfile(name="p", plugins=(plugin,)),))


def test_a_policy_survives_the_way_to_a_replica() -> None:
    sent = policy(args={"a": [1, {"b": None}]}, weight=3, path="p.yaml:1: x")
    assert decode_effective(encode_effective(sent)) == sent


def test_the_wire_form_is_what_is_documented() -> None:
    assert msgspec.json.decode(encode_effective(policy(weight=2, path="x"))) == {
        "profiles": [
            {
                "name": "p",
                "plugins": [
                    {
                        "name": "A",
                        "weight": 2,
                        "args": {},
                        "failurePolicy": "Abort",
                        "timeBudgetSeconds": 1.0,
                        "path": "x",
                    }
                ],
            }
        ],
        "shadows": [],
    }


def test_what_is_no_effective_policy_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_effective(b'{"profile": []}')


def test_a_profile_is_found_by_name() -> None:
    (profile,) = policy().profiles
    assert policy().profile("p") == profile
    assert policy().profile("q") is None


SCHEMA: dict[str, Any] = {
    "$ref": "#/$defs/Args",
    "$defs": {
        "Args": {
            "type": "object",
            "required": ["label"],
            "additionalProperties": False,
            "properties": {
                "label": {"type": "string"},
                "limit": {"type": "number", "exclusiveMinimum": 0.0, "maximum": 100.0},
                "mode": {"enum": ["pack", "spread"]},
                "on": {"type": "boolean"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                "free": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
        },
        "Part": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
    },
}


def problems(**args: object) -> list[str]:
    found = schema_problems({"label": "x", **args}, SCHEMA, "args")
    return [f"{problem.path}: {problem.message}" for problem in found]


@pytest.mark.parametrize(
    "args",
    [
        {"limit": 100},
        {"limit": 0.5, "mode": "pack", "on": False},
        {"parts": [{"size": 1, "anything": 2}], "counts": {"a": 1}},
        {"free": None},
        {"either": [1]},  # this schema is beyond us: the replica decides
    ],
)
def test_what_fits_the_schema_passes(args: dict[str, object]) -> None:
    assert problems(**args) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"lable": 1}, "args.lable: unknown field `lable`, did you mean `label`?"),
        ({"label": 5}, "args.label: expected str, got int 5"),
        ({"limit": True}, "args.limit: expected float, got bool true"),
        ({"limit": 0}, "args.limit: expected float > 0.0, got int 0"),
        ({"limit": 100.5}, "args.limit: expected float <= 100.0, got float 100.5"),
        ({"mode": "x"}, 'args.mode: expected "pack" or "spread", got str "x"'),
        ({"free": 1}, "args.free: expected str | null, got int 1"),
        ({"on": 1}, "args.on: expected bool, got int 1"),
        (
            {"parts": [{}, {"size": 0}]},
            "args.parts[1].size: expected int >= 1, got int 0",
        ),
        ({"counts": {"a": "b"}}, 'args.counts.a: expected int, got str "b"'),
    ],
)
def test_what_does_not_fit_is_told_with_its_path(args: dict[str, object], message: str) -> None:
    assert problems(**args) == [message]


def test_a_missing_field_is_told() -> None:
    (problem,) = schema_problems({}, SCHEMA, "args")
    assert (problem.path, problem.message) == ("args", "field `label` is missing")
