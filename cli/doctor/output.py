"""Shows findings: in words, or as JSON."""

from collections.abc import Sequence

import msgspec

from cli.doctor.check import Finding, Level
from cli.shared.screen import Screen

STYLES = {
    Level.PROBLEM: "bold red",
    Level.WARNING: "yellow",
    Level.UNCHECKED: "dim",
    Level.OK: "green",
}


def show(found: Sequence[Finding], output: str, *, verbose: bool) -> None:
    """Write findings to stdout in the form *output*: "text" or "json"; the worst come first.

    Args:
        found: The findings.
        output: The form.
        verbose: Whether passed checks have a line each in the text.
    """
    screen = Screen()
    if output == "json":
        content = {"counts": _counts(found), "checks": found}
        screen.write(msgspec.json.format(msgspec.json.encode(content)).decode())
        return
    by_level = {level: [each for each in found if each.level is level] for level in Level}
    for each in (*by_level[Level.PROBLEM], *by_level[Level.WARNING]):
        screen.sentence(f"{each.level}: {each.check}: {each.evidence}", STYLES[each.level])
        screen.sentence(f"  to do: {each.change}")
    for reason, names in _reasons(by_level[Level.UNCHECKED]).items():
        text = f"{Level.UNCHECKED}: {', '.join(names)}: {reason}"
        screen.sentence(text, STYLES[Level.UNCHECKED])
    if verbose:
        for each in by_level[Level.OK]:
            screen.sentence(f"{each.level}: {each.check}: {each.evidence}", STYLES[Level.OK])
    counts = [f"{count} {level}" for level, count in _counts(found).items() if count]
    hint = "" if verbose or not by_level[Level.OK] else " (--verbose lists these)"
    screen.sentence(f"{', '.join(counts)}{hint}", "bold")


def _reasons(found: Sequence[Finding]) -> dict[str, list[str]]:
    """Return the names of what was not checked, by the reason."""
    reasons: dict[str, list[str]] = {}
    for each in found:
        reasons.setdefault(each.evidence, []).append(each.check)
    return reasons


def _counts(found: Sequence[Finding]) -> dict[str, int]:
    levels = [each.level for each in found]
    return {str(level): levels.count(level) for level in Level}
