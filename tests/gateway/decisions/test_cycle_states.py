"""What plugins keep for a bind lies in the gateway meanwhile, within bounds."""

from gateway.cycle.cycle_states import VALUE_BYTES, CycleStates
from moorage.plugin.cycle_state import KeptValue


def values(**texts: bytes) -> dict[str, KeptValue]:
    return {key: KeptValue(json=text) for key, text in texts.items()}


def test_the_score_phase_adds_to_the_filter_phase_of_the_same_attempt() -> None:
    states = CycleStates(10_000)
    states.begin("uid", {"device": KeptValue(by_node={"a": b"1"}), **values(why=b'"first"')})
    states.add("uid", values(why=b'"later"', score=b"7"))
    assert states.at("uid", "a") == {"device": b"1", "why": b'"later"', "score": b"7"}
    assert states.at("uid", "b") == {"why": b'"later"', "score": b"7"}
    assert states.at("other", "a") == {}


def test_a_new_attempt_begins_without_any() -> None:
    states = CycleStates(10_000)
    states.begin("uid", values(one=b"1"))
    states.begin("uid", values(two=b"2"))
    assert states.at("uid", "a") == {"two": b"2"}
    states.end("uid")
    assert states.at("uid", "a") == {}


def test_the_oldest_goes_first_if_it_is_too_much() -> None:
    states = CycleStates(3 * (VALUE_BYTES + 1))
    for uid in "abcd":
        states.begin(uid, values(key=b"1"))
    assert [bool(states.at(uid, "n")) for uid in "abcd"] == [False, True, True, True]
    states.begin("e", values(key=b"1" * 10_000))
    assert not any(states.at(uid, "n") for uid in "abcde")
    states.begin("f", values(key=b"1"))
    assert states.at("f", "n")
