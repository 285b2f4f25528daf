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
import math
import os
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeVar

from moorage.errors import suggestion
from moorage.units.durations import format_duration, parse_duration

_KINDS = {int: "an integer", float: "a number", str: "text", Path: "a path", bool: "true or false"}
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True}
_BOOLEANS |= {"false": False, "0": False, "no": False, "off": False}


class Dataclass(Protocol):
    """A class made by `dataclasses.dataclass`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a settings class."""

    name: str
    type: Any  # of one item, for a repeatable setting
    default: Any
    repeatable: bool
    optional: bool
    help: str
    unit: str
    minimum: float | None
    maximum: float | None

    @property
    def option(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "MOORAGE_" + self.name.upper()

    @property
    def duration(self) -> bool:
        """Whether it is written as a duration."""
        return self.type is float and self.unit == "seconds"

    @property
    def choices(self) -> tuple[str, ...]:
        """The only values allowed; empty when there is no such list."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return " or ".join(self.choices)
        kind = "a duration such as 500ms or 1m30s" if self.duration else _KINDS[self.type]
        low = [] if self.minimum is None else [f"at least {self.show(self.minimum)}"]
        high = [] if self.maximum is None else [f"at most {self.show(self.maximum)}"]
        return ", ".join([kind, *low, *high])

    @property
    def meaning(self) -> str:
        """What it is for, and which values are allowed if those are fewer than its type has."""
        is_bounded = self.choices or self.minimum is not None or self.maximum is not None
        return f"{self.help} Allowed: {self.allowed}." if is_bounded else self.help

    def show(self, value: Any) -> str:
        """Return a value as a person writes it."""
        if value is None:
            return ""
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        if isinstance(value, bool):
            return str(value).lower()
        return format_duration(value) if self.duration else f"{value}"

    def convert(self, origin: str, text: str) -> Any:
        """Return the value; raises ValueError naming the option or variable and what is allowed."""
        if self.optional and not text:
            return None
        try:
            value = self._from_text(text)
        except (ValueError, KeyError) as error:
            raise self._refusal(origin, text) from error
        if self.minimum is not None and not value >= self.minimum:
            raise self._refusal(origin, text)
        if self.maximum is not None and not value <= self.maximum:
            raise self._refusal(origin, text)
        return value

    def _refusal(self, origin: str, text: str) -> ValueError:
        # Kubernetes sets NAME_PORT=tcp://... for every Service in the namespace.
        hint = "; set enableServiceLinks: false on the pod" if text.startswith("tcp://") else ""
        return ValueError(f'{origin} is "{text}", allowed: {self.allowed}{hint}')

    def _from_text(self, text: str) -> Any:
        if self.choices:
            return {choice: choice for choice in self.choices}[text]
        if self.type is bool:
            return _BOOLEANS[text.strip().lower()]
        if not self.duration:
            value = self.type(text)
        elif text.replace(".", "", 1).isdecimal():
            value = float(text)
        else:
            value = parse_duration(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(text)
        return value


def declared_settings(cls: type[Dataclass]) -> Iterator[Setting]:
    """Yield what a class declares with `setting`, in order; other fields are for programs only."""
    hints = typing.get_type_hints(cls)
    for field in filter(lambda each: each.metadata, dataclasses.fields(cls)):
        hint, arguments = hints[field.name], typing.get_args(hints[field.name])
        optional = isinstance(hint, types.UnionType)
        repeatable = typing.get_origin(hint) is tuple
        yield Setting(
            name=field.name,
            type=arguments[0] if optional or repeatable else hint,
            default=field.default,
            repeatable=repeatable,
            optional=optional,
            **field.metadata,
        )


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
    parser = _OptionParser(prog=prog, allow_abbrev=False)
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


class _OptionParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].partition("=")[0].split(" ")[0]
        near = suggestion(unknown, self._option_string_actions) if unknown else ""
        self.exit(2, f"{self.prog}: {message}{near}; see {self.prog} --help\n")


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
