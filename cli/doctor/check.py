"""What a check is: a function from an installation to what is wrong, each with what to do.

The name of the function is that of the check; its docstring says what holds where nothing is wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec

from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import NotReadError

SHOWN = 3
"""Names that one sentence has at most."""

MOST = 4
"""Findings of one check that are reported one by one."""


class Level(StrEnum):
    """How bad a finding is, the worst first."""

    PROBLEM = "problem"
    WARNING = "warning"
    UNCHECKED = "not checked"
    OK = "ok"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found.

    Attributes:
        group: The group of the check; `examine` sets it.
        check: Its name; `examine` sets it.
        level: How bad it is.
        evidence: What was seen, or why nothing was.
        change: What to do about it; "" where nothing is wrong.
    """

    group: str = ""
    check: str = ""
    level: Level
    evidence: str
    change: str = ""


Check = Callable[[Installation], Iterator[Finding]]
"""Yields all that is wrong; raises `NotReadError` where it cannot know."""


def problem(evidence: str, change: str) -> Finding:
    """Return what keeps pods from being placed as the policy says."""
    return Finding(level=Level.PROBLEM, evidence=evidence, change=change)


def warning(evidence: str, change: str) -> Finding:
    """Return what works now, but may break or be unintended."""
    return Finding(level=Level.WARNING, evidence=evidence, change=change)


def name_of(check: Check) -> str:
    """Return the name of a check."""
    return check.__name__.replace("_", "-")


def about(check: Check) -> str:
    """Return what holds where nothing is wrong, in one line."""
    return " ".join((check.__doc__ or "").split())


def examine(group: str, check: Check, installation: Installation) -> Iterator[Finding]:
    """Yield what a check finds, the worst first; what it needs and nobody could read is unchecked.

    An answer that lacks a field counts as not read: a gateway may be of another version.
    """
    found: list[Finding] = []
    try:
        found.extend(check(installation))  # what came before an error counts
    except NotReadError as error:
        found.append(Finding(level=Level.UNCHECKED, evidence=str(error)))
    except KeyError as error:
        text = f"what was read has no {error}, as from another version of Moorage"
        found.append(Finding(level=Level.UNCHECKED, evidence=text))
    bad = [each for level in list(Level)[:2] for each in found if each.level is level]
    fine = found or [Finding(level=Level.OK, evidence=about(check))]
    for number, each in enumerate(bad[:MOST] or fine, 1):
        more = f" (and {len(bad) - MOST} more)" if number == MOST < len(bad) else ""
        evidence = each.evidence + more
        yield msgspec.structs.replace(each, group=group, check=name_of(check), evidence=evidence)


def listed(names: Sequence[str]) -> str:
    """Return some names with commas, and the number of the others."""
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown
