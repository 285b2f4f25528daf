"""What a check is: a small function from an installation to what it found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a check yields; see `Finding`."""

    level: Level
    evidence: str
    change: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a check found.

    Attributes:
        group: The group of the check.
        check: Its name.
        level: How bad it is.
        evidence: What was seen, or why nothing was.
        change: What to do about it; "" where nothing is wrong.
    """

    group: str
    check: str
    level: Level
    evidence: str
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is checked.

    Attributes:
        name: Its name.
        about: What holds where nothing is wrong, in one sentence.
        run: Looks, and yields all that is wrong; what is ok counts if nothing else is yielded.
    """

    name: str
    about: str
    run: Callable[[Installation], Iterator[Result]]

    def findings(self, group: str, installation: Installation) -> Iterator[Finding]:
        """Yield what the check finds; what it needs and nobody could read is not checked."""
        results = []
        try:
            for result in self.run(installation):
                results.append(result)  # noqa: PERF402 - what came before an error counts
        except NotReadError as error:
            results.append(unchecked(str(error)))
        bad = [r for r in results if r.level in (Level.PROBLEM, Level.WARNING)]
        bad.sort(key=lambda each: list(Level).index(each.level))
        fine = sorted(results, key=lambda each: each.level is not Level.UNCHECKED)[:1]
        for number, each in enumerate(bad[:MOST] or fine, 1):
            more = len(bad) - MOST if number == MOST else 0
            yield Finding(
                group=group,
                check=self.name,
                level=each.level,
                evidence=each.evidence + (f" (and {more} more)" if more > 0 else ""),
                change=each.change,
            )


def ok(evidence: str) -> Result:
    """Return that nothing is wrong."""
    return Result(level=Level.OK, evidence=evidence)


def warning(evidence: str, change: str) -> Result:
    """Return what works now, but may break or be unintended."""
    return Result(level=Level.WARNING, evidence=evidence, change=change)


def problem(evidence: str, change: str) -> Result:
    """Return what keeps pods from being placed as the policy says."""
    return Result(level=Level.PROBLEM, evidence=evidence, change=change)


def unchecked(reason: str) -> Result:
    """Return that nobody knows, and why."""
    return Result(level=Level.UNCHECKED, evidence=reason)


def listed(names: Sequence[str]) -> str:
    """Return some names with commas, and the number of the others."""
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown
