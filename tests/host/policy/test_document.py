"""Policy documents: how they are read, their schema, and the whole that comes of one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import (
    Document,
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    parse,
)
from moorage_host.policy import read as read_file
from moorage_host.policy.checks import schema_problems

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"


def read(body: str) -> Document:
    return parse(HEADER + body, "p.yaml")


def config(fields: str) -> str:
    return f"profiles:\n- pluginConfig:\n  - name: A\n    {fields}\n"


def test_json_is_read_too() -> None:
    text = (
        '{"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration",\n "profiles": [{'
        '"pluginConfig": [{"name": "A", "args": {"x": 1e3, "y": "\\u00e9"}}]}]}'
    )
    (profile,) = parse(text, "p.json").configuration.profiles
    assert profile.plugin_config[0].args == {"x": 1000.0, "y": "é"}


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


def policy(**changes: object) -> EffectivePolicy:
    fields = {"name": "A", "failurePolicy": "Abort", "timeBudgetSeconds": 1.0, **changes}
    plugin = msgspec.convert(fields, EffectivePlugin)
    return EffectivePolicy(profiles=(EffectiveProfile(name="p", plugins=(plugin,)),))


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
