"""All checks in their groups, in the order in which a user would look."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Check, Finding
from cli.doctor.checks import configuration, profiles, reaching, release, running, tls, versions
from cli.doctor.installation.installation import Installation

GROUPS: Mapping[str, Sequence[Check]] = {
    "Moorage runs": running.CHECKS,
    "It is what the release has": release.CHECKS,
    "kube-scheduler reaches it": reaching.CHECKS,
    "kube-scheduler's configuration": configuration.CHECKS,
    "Profiles and pods": profiles.CHECKS,
    "Certificates": tls.CHECKS,
    "Versions and clocks": versions.CHECKS,
}


def findings(installation: Installation) -> Iterator[Finding]:
    """Yield what each check finds."""
    for group, checks in GROUPS.items():
        for check in checks:
            yield from check.findings(group, installation)
