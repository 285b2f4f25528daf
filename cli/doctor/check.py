"""What a check is: a small function from an installation to a result."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cli.doctor.finding import Finding, Level
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import NotReadError

SHOWN = 3
"""Names that one sentence has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a check returns; see `Finding`."""

    level: Level
    evidence: str
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is checked.

    Attributes:
        name: Its name.
        about: What holds where nothing is wrong, in one sentence.
        run: Looks.
    """

    name: str
    about: str
    run: Callable[[Installation], Result]

    def finding(self, group: str, installation: Installation) -> Finding:
        """Return what the check finds; what it needs and nobody could read is not checked."""
        try:
            result = self.run(installation)
        except NotReadError as error:
            result = unchecked(str(error))
        return Finding(
            group=group,
            check=self.name,
            level=result.level,
            evidence=result.evidence,
            change=result.change,
        )


def ok(evidence: str) -> Result:
    """Return that nothing is wrong."""
    return Result(level=Level.OK, evidence=evidence)


def warning(evidence: str, change: str) -> Result:
    """Return what works now, and may stop working or is not what the user wants."""
    return Result(level=Level.WARNING, evidence=evidence, change=change)


def problem(evidence: str, change: str) -> Result:
    """Return what keeps pods from being placed as the policy says."""
    return Result(level=Level.PROBLEM, evidence=evidence, change=change)


def unchecked(reason: str) -> Result:
    """Return that nobody knows, and why."""
    return Result(level=Level.UNCHECKED, evidence=reason)


def worst(results: Iterable[Result], otherwise: Result) -> Result:
    """Return the worst of several results; of equal ones the first, with the number of others."""
    order = list(Level)
    found = sorted(
        (each for each in results if each.level is not Level.OK),
        key=lambda each: order.index(each.level),
    )
    if not found:
        return otherwise
    first = found[0]
    more = sum(each.level is first.level for each in found) - 1
    suffix = f" (and {more} more like this)" if more else ""
    return Result(level=first.level, evidence=f"{first.evidence}{suffix}", change=first.change)


def listed(names: Sequence[str]) -> str:
    """Return some names with commas, and the number of the others."""
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown
