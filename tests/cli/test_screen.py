"""Output for people and for grep."""

import io

from rich.console import Console

from cli.screen import Screen

WHY = "0/3 nodes are available: [red] :smile: " + "a very long reason, " * 20


def screen(*, terminal: bool) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out, width=80, force_terminal=terminal, markup=False, emoji=False, highlight=False
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


def test_on_a_terminal_rows_fit_its_width() -> None:
    rich, out = screen(terminal=True)
    rich.table(("POD", "WHY"), [("default/a", WHY)])
    assert len(out.getvalue().splitlines()) > 5
    assert "[red] :smile:" in out.getvalue()


def test_addresses_are_not_broken_on_a_narrow_terminal() -> None:
    rich, out = screen(terminal=True)
    rich.lines(("FOR", "ADDRESS"), [("gateway", "http://" + "x" * 100)])
    assert "http://" + "x" * 100 in out.getvalue()


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
