"""Output for people and for grep."""

import io
import re

from rich.console import Console

from cli.shared.screen import Screen

WHY = "0/3 nodes are available: [red] :smile: " + "a very long reason, " * 20


def screen(*, terminal: bool, width: int = 80) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, markup=False, emoji=False, highlight=False
    )
    return Screen(console), out


def test_off_a_terminal_each_row_is_one_line_however_long() -> None:
    plain, out = screen(terminal=False)
    plain.table(("POD", "WHY"), [("default/a", WHY), ("b", "short")])
    assert out.getvalue().splitlines() == [
        "POD        WHY",
        f"default/a  {WHY.strip()}",
        "b          short",
    ]


def test_a_line_is_never_cut_or_read_as_markup() -> None:
    for terminal in (False, True):
        shown, out = screen(terminal=terminal)
        shown.write(WHY)
        assert WHY in out.getvalue()
        assert out.getvalue().count("\n") == 1


def test_progress_off_a_terminal_is_a_line_at_the_end() -> None:
    plain, out = screen(terminal=False)
    with plain.progress("Scheduling pods", 3) as progress:
        progress(1)
        progress(3)
    assert out.getvalue() == "Scheduling pods: 3/3\n"


def test_on_a_narrow_terminal_names_stand_above_their_reason_and_are_never_cut() -> None:
    rich, out = screen(terminal=True, width=40)
    name = "default/a-pod-with-quite-a-long-name-for-its-terminal"
    rich.table(("POD", "NODE", "WHY"), [(name, "node-0001", WHY), ("b/c", "node-0002", "short")])
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in out.getvalue().splitlines()]
    assert lines[:2] == [name, "  node-0001"]
    assert lines[-2:] == ["b/c  node-0002", "  short"]
    assert all(len(line) <= 40 for line in lines[1:])


def test_a_sentence_is_broken_between_words_on_a_terminal_and_one_line_elsewhere() -> None:
    for terminal, lines in ((True, 2), (False, 1)):
        shown, out = screen(terminal=terminal, width=40)
        shown.sentence("default/late -> node-0001: the only feasible node")
        assert out.getvalue().count("\n") == lines


def test_progress_on_a_narrow_terminal_is_one_line_and_keeps_its_numbers() -> None:
    rich, out = screen(terminal=True, width=40)
    with rich.progress("Scheduling pods", 2000) as progress:
        progress(412)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert all(len(line) <= 40 for line in re.split(r"[\r\n]", shown))
    assert re.search(r"Scheduling pods +412/2000 ", shown)
