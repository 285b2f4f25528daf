import msgspec
import pytest

from moorage_host.policy import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    decode_effective,
    encode_effective,
)


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


def test_the_order_of_arguments_does_not_change_the_bytes() -> None:
    assert encode_effective(policy(args={"a": 1, "b": 2})) == encode_effective(
        policy(args={"b": 2, "a": 1})
    )


@pytest.mark.parametrize(
    "changes",
    [{"weight": 2}, {"args": {"a": 1}}, {"failurePolicy": "Ignore"}, {"timeBudgetSeconds": 2.0}],
)
def test_any_content_changes_the_revision(changes: dict[str, object]) -> None:
    assert policy(**changes).revision != policy().revision


def test_the_place_in_a_file_does_not_change_the_revision() -> None:
    assert policy(path="p.yaml:9: x").revision == policy().revision


def test_a_profile_is_found_by_name() -> None:
    (profile,) = policy().profiles
    assert policy().profile("p") == profile
    assert policy().profile("q") is None
