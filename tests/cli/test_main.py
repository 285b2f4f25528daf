"""What `moorage --help` shows of each command."""

from click.testing import CliRunner

from cli.main import GROUPS, main


def test_the_help_shows_every_command_with_a_whole_sentence() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).output
    words = " ".join(shown.partition("Options:")[2].split())
    assert "..." not in words
    for title, commands in GROUPS.items():
        assert f"\n{title}:\n" in shown
        for command in commands:
            first, _, _ = " ".join((command.help or "").split()).partition(". ")
            assert f"{command.name} {first}" in words
