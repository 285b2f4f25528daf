"""Text of others is fit for people wherever the command writes it."""

import ast
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

import cli
import gateway
import moorage
import moorage_apps
import moorage_host
import sandbox
import services
from cli.decisions.explain_output import show
from cli.shared.output import echo
from cli.shared.screen import Screen
from gateway.decisions.explanation import EventItem, Explanation, RejectedNodes
from moorage.units.printable import printable

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eright\x00\ud800\x9b\x7f\u2066\U000e0041"

ONE_WAY_OUT = ("cli/shared/output.py", "cli/shared/screen.py")
"""The modules that write to a terminal."""

EVENTS_WRITER = "moorage_host/kube/events.py"

WRITERS = {"click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ascii", "plain ascii"),
        ("Straße 東京", "Straße 東京"),
        ("\x1b[2J", r"\u001b[2J"),
        ("a\u202eb", r"a\u202eb"),
        ("\x00\x7f\x9b", r"\u0000\u007f\u009b"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\udb40\udc41"),
        ("two\nlines", r"two\u000alines"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert json.loads(f'"{shown}"') == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "surrogatepass"
    )
    assert printable("two\nlines\tin all", lines=True) == "two\nlines\tin all"


def test_screen_and_echo_write_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    for terminal in (False, True):
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, color_system=None, width=200)
        screen = Screen(console)
        screen.write(HOSTILE)
        screen.sentence(HOSTILE)
        screen.table(("NAME", "REASON"), [(HOSTILE, HOSTILE)])
        assert is_fit(out.getvalue())
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    written = capsys.readouterr()
    assert is_fit(written.out)
    assert is_fit(written.err)


@pytest.mark.parametrize("form", ["text", "wide", "json", "yaml"])
def test_an_explanation_is_fit_in_every_form(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = HOSTILE.replace("\ud800", "")  # JSON of the gateway has none
    now = datetime.now(UTC).isoformat()
    found = Explanation(
        pod="default/p",
        place="is pending",
        reason=hostile,
        without=hostile,
        next=(hostile,),
        rejections=(RejectedNodes(nodes=1, reason=hostile, by="Moorage P"),),
        events=(EventItem(time=now, reason="FailedScheduling", note=hostile, by="someone"),),
    )
    show(found, form)  # type: ignore[arg-type]
    assert is_fit(capsys.readouterr().out)


def is_fit(text: str) -> bool:
    return all(character.isprintable() or character in "\n\t" for character in text)


ROOTS = (cli, gateway, services, sandbox, moorage, moorage_host, moorage_apps)


def modules() -> Iterator[tuple[str, str]]:
    """Yield each module of the product with its text."""
    for package in ROOTS:
        root = Path(next(iter(package.__path__)))
        for path in root.rglob("*.py"):
            yield f"{root.name}/{path.relative_to(root)}", path.read_text()


def test_no_other_module_writes_by_itself() -> None:
    found = [
        f"{name}:{call.lineno}: {ast.unparse(call)[:80]}"
        for name, text in modules()
        if name not in ONE_WAY_OUT
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in WRITERS
        if not (call.args and is_harmless(call.args[0]))
    ]
    assert not found, "use cli.shared.output.echo or cli.shared.screen.Screen"


def is_harmless(written: ast.expr) -> bool:
    """Whether a text is a constant, or made fit where it is written."""
    is_call = isinstance(written, ast.Call) and ast.unparse(written.func) == "printable"
    return is_call or isinstance(written, ast.Constant)


def test_events_have_one_writer() -> None:
    found = {name for name, text in modules() if '"reportingController":' in text}
    assert found <= {EVENTS_WRITER}, "use moorage_host.kube.events, which makes notes fit"
