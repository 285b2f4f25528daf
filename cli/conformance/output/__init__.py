"""Shows reports: as a table, as JSON, as JUnit's XML."""

from collections.abc import Sequence

import msgspec

from cli.conformance.output.junit import junit
from cli.conformance.output.table import show_table
from cli.conformance.running import Report
from cli.shared.screen import Screen


def show(reports: Sequence[Report], output: str) -> None:
    """Write reports to stdout in the form *output*: "text", "json" or "junit"."""
    if output == "json":
        Screen().write(msgspec.json.format(msgspec.json.encode(reports)).decode())
    elif output == "junit":
        Screen().write(junit(reports))
    else:
        for report in reports:
            show_table(report)
