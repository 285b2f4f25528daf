"""Settings of a process: one frozen dataclass, read from options and environment variables.

Every process (gateway, filter, scorer, binder, sandbox) declares its own:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class GatewaySettings:
        extender_port: int = setting(8888, "Where kube-scheduler calls.", minimum=1, maximum=65535)

    settings = parse_settings(GatewaySettings, "gateway")

The option `--extender-port` beats the environment variable `MOORAGE_EXTENDER_PORT`, which beats the
default. Types: int, float, str, bool, Path, Literal of strings, any of these but bool in
`tuple[X, ...]` (the option is repeated, the variable separates by commas), or `X | None`, where
nothing written means None. A float with the unit "seconds" is written as a duration: "500ms".
"""

import argparse
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from moorage_host.settings.fields import Dataclass, Setting, declared_settings

SettingsT = TypeVar("SettingsT", bound=Dataclass)


def setting(
    default: object,
    help: str,  # noqa: A002 - argparse's word
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Declare a setting: default, meaning in one sentence, unit, and bounds (both included)."""
    metadata = {"help": help, "unit": unit, "minimum": minimum, "maximum": maximum}
    return dataclasses.field(default=default, metadata=metadata)


def parse_settings(
    cls: type[SettingsT],
    prog: str,
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> SettingsT:
    """Return the settings; a bad one ends the process with one line on stderr and exit code 2."""
    parser = _Parser(prog=prog, allow_abbrev=False)
    declared = list(declared_settings(cls))
    for item in declared:
        _add_option(parser, item)
    options = vars(parser.parse_args(argv))
    environ = os.environ if environ is None else environ
    try:
        values = {item.name: _value(item, options[item.name], environ) for item in declared}
    except ValueError as error:
        parser.error(str(error))
    return cls(**values)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting as the documentation shows it."""

    option: str
    environment: str
    default: str
    unit: str
    meaning: str


def settings_table(cls: type[Dataclass]) -> list[SettingRow]:
    """Return one row per setting, in the order of declaration."""
    return [
        SettingRow(
            option=item.option,
            environment=item.variable,
            default=item.show(item.default),
            unit=item.unit,
            meaning=item.help + (f" Allowed: {item.allowed}." if item.bounded else ""),
        )
        for item in declared_settings(cls)
    ]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _add_option(parser: argparse.ArgumentParser, item: Setting) -> None:
    default = item.show(item.default) or "none"
    text = f"{item.help} [{item.variable}; default: {default}]".replace("%", "%%")
    if item.type is bool:
        action = argparse.BooleanOptionalAction
        parser.add_argument(item.option, dest=item.name, action=action, help=text)
    else:
        verb = "append" if item.repeatable else "store"
        metavar = item.unit.upper().replace(" ", "_") or None
        parser.add_argument(item.option, dest=item.name, action=verb, help=text, metavar=metavar)


def _value(item: Setting, option: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(option, bool):
        return option
    if isinstance(option, list):
        return tuple(item.convert(item.option, text) for text in option)
    if option is not None:
        return item.convert(item.option, option)
    text = environ.get(item.variable)
    if text is None:
        return item.default
    if item.repeatable:
        parts = filter(None, map(str.strip, text.split(",")))
        return tuple(item.convert(item.variable, part) for part in parts)
    return item.convert(item.variable, text)
