"""What the package index and pip-audit know about the versions of a lock."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

SECONDS = 300.0
_YANKED = re.compile(r"yanked version: '([^']+)' candidate \(version (\S+)")


def yanked(lock: Path) -> tuple[dict[tuple[str, str], str], str]:
    """Return the versions that their authors withdrew, and a line about the check."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--no-deps", "--require-hashes", "--quiet", "--disable-pip-version-check"]
    try:
        run = subprocess.run(
            [*command, "-r", str(lock)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"yanked versions: not checked, as pip took longer than {SECONDS:.0f} s"
    if run.returncode:
        return {}, "yanked versions: not checked, as pip cannot get the packages from its index"
    return withdrawn(run.stderr), f"yanked versions: checked by pip ({lock.name})"


def withdrawn(warnings: str) -> dict[tuple[str, str], str]:
    """Read pip's warnings."""
    return {(match[1], match[2]): "yanked" for match in _YANKED.finditer(warnings)}


def vulnerable(lock: Path) -> tuple[dict[tuple[str, str], str], str]:
    """Return the versions with known vulnerabilities, and a line about the check."""
    tool = shutil.which("pip-audit")
    if tool is None:
        return {}, "known vulnerabilities: not checked, as pip-audit is not installed"
    command = [tool, "-r", str(lock), "--disable-pip", "--format", "json"]
    try:
        run = subprocess.run(
            [*command, "--progress-spinner", "off"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return reported(run.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {}, "known vulnerabilities: not checked, as pip-audit reaches no data"


def reported(answer: str) -> tuple[dict[tuple[str, str], str], str]:
    """Read the JSON of pip-audit."""
    packages = json.loads(answer)["dependencies"]
    known = [each for each in packages if "vulns" in each]
    found = {
        (each["name"], each["version"]): ", ".join(vuln["id"] for vuln in each["vulns"])
        for each in known
        if each["vulns"]
    }
    return found, f"known vulnerabilities: pip-audit knows {len(known)} of {len(packages)} packages"
