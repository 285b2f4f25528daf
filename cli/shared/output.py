"""In which form commands write: text for people, or JSON and YAML for programs."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

from moorage.units.printable import printable

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Form = Literal["text", "wide", "json", "yaml"]

FORMS = ("text", "wide", "json", "yaml")


def output_option(wide: str = "") -> Callable[[FunctionT], FunctionT]:
    """Return the option `--output`, with what *wide* shows in addition; "" if there is none."""
    forms = FORMS if wide else [form for form in FORMS if form != "wide"]
    about = f"wide is text that shows {wide}; " if wide else ""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default="text",
        show_default=True,
        help=f"{about}json and yaml have everything.",
    )


def is_for_programs(form: Form) -> bool:
    """Whether a form is JSON or YAML."""
    return form in ("json", "yaml")


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Write lines to stdout or stderr, fit for a terminal whoever they came from."""
    click.echo(printable(str(text), lines=True), err=err, nl=nl)


def write(content: object, form: Form) -> None:
    """Write to stdout as JSON or YAML what msgspec can encode."""
    import msgspec  # the help needs none of it
    import yaml

    if form == "json":
        echo(msgspec.json.format(msgspec.json.encode(content)).decode())
        return
    text = yaml.safe_dump(msgspec.to_builtins(content), sort_keys=False, width=100)
    echo(text, nl=False)
