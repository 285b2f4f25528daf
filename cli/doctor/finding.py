"""What is reported: what each check found, and how bad it is."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How bad a finding is, the worst first."""

    PROBLEM = "problem"
    WARNING = "warning"
    UNCHECKED = "not checked"
    OK = "ok"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a check found.

    Attributes:
        group: The group of the check.
        check: Its name.
        level: How bad it is.
        evidence: What was seen, or why nothing was.
        change: What to change; "" where nothing is wrong.
    """

    group: str
    check: str
    level: Level
    evidence: str
    change: str = ""
