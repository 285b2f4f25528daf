"""What `moorage --help` shows of each command."""

import pytest
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    made = CliRunner().invoke(main, ["completion", shell])
    assert made.exit_code == 0
    assert f"_MOORAGE_COMPLETE={shell}_complete" in made.output
    words = {"_MOORAGE_COMPLETE": f"{shell}_complete", "COMP_CWORD": "1"}
    words["COMP_WORDS"] = "moorage " if shell == "fish" else "moorage expl"
    if shell == "fish":
        words["COMP_CWORD"] = "expl"
    assert "explain" in CliRunner().invoke(main, env=words, prog_name="moorage").output
