"""Shows findings: in words, or as JSON."""

from collections.abc import Sequence

import msgspec

from cli.doctor.finding import Finding, Level
from cli.shared.screen import Screen

STYLES = {Level.PROBLEM: "bold red", Level.WARNING: "yellow", Level.UNCHECKED: "dim", Level.OK: ""}


def show(found: Sequence[Finding], output: str) -> None:
    """Write findings to stdout in the form *output*: "text" or "json"."""
    screen = Screen()
    if output == "json":
        content = {"counts": _counts(found), "checks": found}
        screen.write(msgspec.json.format(msgspec.json.encode(content)).decode())
        return
    width = max(len(each.check) for each in found)
    for group in dict.fromkeys(each.group for each in found):
        screen.write(group, "bold")
        its = [each for each in found if each.group == group]
        for each in its:
            if each.level is not Level.UNCHECKED:
                _line(screen, each, width)
        for reason, names in _unchecked(its).items():
            text = f"  {Level.UNCHECKED:<11}  {', '.join(names)}: {reason}"
            screen.sentence(text, STYLES[Level.UNCHECKED])
        screen.write("")
    screen.sentence(total(found), "bold")


def total(found: Sequence[Finding]) -> str:
    """Return the sum of all checks in one line."""
    counts = [f"{count} {level}" for level, count in _counts(found).items() if count]
    return f"{len(found)} checks: {', '.join(counts)}"


def _line(screen: Screen, each: Finding, width: int) -> None:
    head = f"{each.level:<11}  {each.check:<{width}}"
    screen.sentence(f"  {head}  {each.evidence}", STYLES[each.level])
    if each.change:
        screen.sentence(f"  {'':<11}  {'change:':>{width}}  {each.change}")


def _unchecked(found: Sequence[Finding]) -> dict[str, list[str]]:
    """Return the names of what was not checked, by the reason."""
    reasons: dict[str, list[str]] = {}
    for each in found:
        if each.level is Level.UNCHECKED:
            reasons.setdefault(each.evidence, []).append(each.check)
    return reasons


def _counts(found: Sequence[Finding]) -> dict[str, int]:
    levels = [each.level for each in found]
    return {str(level): levels.count(level) for level in Level}
