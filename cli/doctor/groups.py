"""All checks in their groups, in the order in which a user would look."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.checks import (
    clocks,
    extender,
    namespace,
    profiles,
    reaching,
    rights,
    state,
    tls,
    versions,
)
from cli.doctor.checks.check import Check
from cli.doctor.finding import Finding
from cli.doctor.installation.installation import Installation

GROUPS: Mapping[str, Sequence[Check]] = {
    "Moorage runs": (*state.CHECKS, *namespace.CHECKS),
    "kube-scheduler reaches it": reaching.CHECKS,
    "kube-scheduler's configuration": extender.CHECKS,
    "Profiles and pods": profiles.CHECKS,
    "Certificates": tls.CHECKS,
    "Rights": rights.CHECKS,
    "Versions": versions.CHECKS,
    "Clocks": clocks.CHECKS,
}


def findings(installation: Installation) -> Iterator[Finding]:
    """Yield what each check finds."""
    for group, checks in GROUPS.items():
        for check in checks:
            yield check.finding(group, installation)
