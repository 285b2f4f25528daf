from typing import Any

import pytest

from moorage_host.policy.checks import schema_problems

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
