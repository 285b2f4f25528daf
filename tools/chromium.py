"""Where the machine has Chromium, and how it is started."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")

# As root, and in containers, Chromium has neither a sandbox nor room in /dev/shm.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]


def chromium() -> str | None:
    """Return the path of the machine's Chromium, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)
