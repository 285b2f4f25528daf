"""All checks in their groups, in the order in which a user would look."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Check
from cli.doctor.checks import (
    clocks,
    configuration,
    namespace,
    profiles,
    rights,
    state,
    tls,
    verbs,
    versions,
)
from cli.doctor.checks.reaching import reports, way
from cli.doctor.finding import Finding
from cli.doctor.installation.installation import Installation

GROUPS: Mapping[str, Sequence[Check]] = {
    "Moorage runs": (*state.CHECKS, *namespace.CHECKS),
    "kube-scheduler reaches it": (*way.CHECKS, *reports.CHECKS),
    "kube-scheduler's configuration": (*configuration.CHECKS, *verbs.CHECKS),
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
