"""The tables of what `moorage conformance` checks."""

import inspect
from collections.abc import Iterator

from cli.conformance import checks
from cli.conformance.findings import section
from tools.docs.markdown import code, escaped, table


def conformance(name: str) -> str:
    """Return the checks of a section of docs/reference/conformance.md."""
    return table(
        ("check", "what is sent, or looked at in every answer"),
        (
            (code(check), escaped(about.rstrip(".")))
            for check, about in [*checks.ANSWERS.items(), *_tests()]
            if section(check) == name
        ),
    )


def _tests() -> Iterator[tuple[str, str]]:
    """Yield the names of tests that send something of their own, and what that is."""
    for test, function in vars(checks).items():
        about = (inspect.getdoc(function) or " ").partition("\n")[0]
        about = about[0].lower() + about[1:]
        if test == "test_recorded":
            for version in checks.VERSIONS:
                yield f"recorded-{version}", about.format(version=version)
        elif test.startswith("test_") and test != "test_answers":
            yield test.removeprefix("test_").replace("_", "-"), about
