"""How far a process is between its start and its end; a readiness check of every process."""

from typing import Literal


class Phase:
    """The phase of a process; whoever starts and stops the process sets its `name`."""

    name: Literal["starting", "serving", "shutting down"] = "starting"

    def problem(self) -> str | None:
        """Return why the process is not ready, or None while it serves."""
        return None if self.name == "serving" else f"the process is {self.name}"
