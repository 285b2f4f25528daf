"""The checks, one module for each group, in the order in which a user would look."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cli.doctor.check import Check, Finding, Level, examine
from cli.doctor.checks import configuration, reaching, running
from cli.doctor.installation.installation import Installation

GROUPS: Mapping[str, Sequence[Check]] = {
    "Moorage runs": (
        running.processes_ready,
        running.pods_ready,
        running.leader,
        running.policy_active,
        running.plugins_work,
        running.versions,
        running.scheduler_version,
    ),
    "kube-scheduler reaches it": (
        reaching.scheduler_known,
        reaching.scheduler_current,
        reaching.extender_address,
        reaching.client_certificate,
        reaching.extender_events,
        reaching.extender_called,
    ),
    "kube-scheduler's configuration": (
        configuration.extender_entry,
        configuration.extender_verbs,
        configuration.extender_resources,
        configuration.profiles,
    ),
}


class DoctorReport(msgspec.Struct, frozen=True):
    """What all checks find, and how many findings there are of each level, the worst first."""

    counts: Mapping[str, int]
    checks: Sequence[Finding]


def report(installation: Installation) -> DoctorReport:
    """Return what each check finds."""
    found = list(findings(installation))
    return DoctorReport(
        {level.value: sum(each.level is level for each in found) for level in Level}, found
    )


def findings(installation: Installation) -> Iterator[Finding]:
    """Yield what each check finds."""
    for group, checks in GROUPS.items():
        for check in checks:
            yield from examine(group, check, installation)
