"""Contexts of kubeconfigs and forms of output mean the same for every command."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from cli.main import main
from cli.shared.gateway.options import current_namespace, embedded_admin, extension
from cli.shared.output import FORMS


def config(context: str, *, current: bool = True) -> str:
    cluster = {"server": "http://x", "extensions": [extension(f"http://{context}")]}
    content = {
        "clusters": [{"name": context, "cluster": cluster}],
        "contexts": [{"name": context, "context": {"cluster": context, "namespace": context}}],
        **({"current-context": context} if current else {}),
    }
    return yaml.safe_dump(content)


def test_a_context_may_be_in_any_file_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(config("one", current=False))
    two.write_text(config("two"))
    monkeypatch.setenv("KUBECONFIG", f"{one}:{tmp_path / 'missing'}:{two}")
    assert (current_namespace(None), embedded_admin(None)) == ("two", "http://two")
    assert (current_namespace(None, "one"), embedded_admin(None, "one")) == ("one", "http://one")
    assert (current_namespace(one), current_namespace(None, "three")) == ("default", "default")


def _commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _commands(inner, f"{name} {inner.name}".strip())
    else:
        yield name, command


COMMANDS = dict(_commands(main))


@pytest.mark.parametrize("name", ["explain", "shadow", "doctor"])
def test_commands_with_tables_have_all_forms(name: str) -> None:
    (option,) = (each for each in COMMANDS[name].params if each.name == "output")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == FORMS
    assert "-o" in option.opts


def test_who_reads_a_kubeconfig_takes_a_context_but_for_up_which_serves_one_cluster() -> None:
    reading = {name for name, each in COMMANDS.items() if _has(each, "kubeconfig")}
    assert {"explain", "up"} <= reading
    assert {name for name in reading if not _has(COMMANDS[name], "context")} == {"up"}


def _has(command: click.Command, name: str) -> bool:
    return any(each.name == name for each in command.params)
