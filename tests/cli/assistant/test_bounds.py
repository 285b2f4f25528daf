"""What an assistant is answered is short, says what is left out, and is printable."""

from typing import Any

import msgspec
import pytest

from cli.assistant.bounds import ANSWER_BYTES, CUT, TEXT, AnswerTooLongError, fitted

ESCAPES = "\x1b[2J\x9b31m\u202e\a"
SHOWN = r"\u001b[2J\u009b31m\u202e\u0007"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"a": [1, "x", None, {"b": True}]}, None, id="short"),
        pytest.param({"a": ["x" * 60] * 2000}, [("a", 1000, 2000)], id="long-list"),
        pytest.param({"a": ({"b": "x" * 60},) * 2000}, [("a", 500, 2000)], id="tuple-of-objects"),
        pytest.param({"a": ["x" * 2000] * 40}, [("a", 20, 40)], id="long-texts"),
        pytest.param(
            {"a": [{"b": ["x" * 100] * count} for count in (20, 40, 10)] * 10},
            [("a[].b", 20, 40), ("a", 20, 30)],
            id="within-lists",
        ),
        pytest.param({"a": {"b": ["x" * 1000] * 90}}, [("a.b", 50, 90)], id="within-objects"),
        pytest.param({ESCAPES: ["x" * 60] * 2000}, [(SHOWN, 1000, 2000)], id="odd-name"),
    ],
)
def test_lists_end_early_where_an_answer_is_long(
    answer: dict[str, Any], expected: list[tuple[str, int, int]] | None
) -> None:
    found, text = fitted(answer)
    assert msgspec.json.decode(text) == found
    assert len(text) <= ANSWER_BYTES
    assert text.isprintable()
    if expected is None:
        assert found == answer
        return
    cuts = [(each["list"], each["shown"], each["of"]) for each in found.pop(CUT)]
    assert sorted(cuts) == sorted(expected)


def test_texts_are_cut_with_the_number_of_characters_that_are_left_out() -> None:
    found, _ = fitted({"x" * (TEXT + 5): "x" * 20_000})
    assert found == {f"{'x' * TEXT} ... (5 more)": f"{'x' * TEXT} ... (18000 more)"}


def test_nothing_that_a_terminal_acts_on_is_in_a_text_or_a_name() -> None:
    found, text = fitted({ESCAPES: [ESCAPES], "b": ({"c": ESCAPES},)})
    assert found == {SHOWN: [SHOWN], "b": [{"c": SHOWN}]}
    assert text.isprintable()


def test_an_answer_without_a_short_form_is_refused() -> None:
    with pytest.raises(AnswerTooLongError, match="ask about one pod or one namespace"):
        fitted({str(number): "x" * 1000 for number in range(100)})
