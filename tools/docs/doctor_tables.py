"""The table of what `moorage doctor` checks."""

from cli.doctor.groups import GROUPS
from tools.docs.markdown import code, escaped, table


def doctor(_: str) -> str:
    """Return the checks of `moorage doctor`."""
    return table(
        ("", "check", "ok if"),
        (
            (group if not number else "", code(check.name), escaped(check.about))
            for group, checks in GROUPS.items()
            for number, check in enumerate(checks)
        ),
    )
