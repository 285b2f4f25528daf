"""The tables of what `moorage conformance` checks."""

from cli.conformance.checks import all_checks
from tools.docs.markdown import code, escaped, table


def conformance(section: str) -> str:
    """Return the checks of a section of docs/reference/conformance.md."""
    return table(
        ("check", "what is sent, or looked at in every answer"),
        (
            (code(check.name), escaped(check.about))
            for check in all_checks()
            if check.section == section
        ),
    )
