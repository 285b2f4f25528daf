"""Runs the checks against one extender, and sorts what they found."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from cli.conformance.checks import Check, Probe, all_checks
from cli.conformance.client import Client, connected
from cli.conformance.findings import Finding, Outcome, Severity, merged
from cli.conformance.requests import Requests
from moorage.errors import ConfigurationError

SECONDS = 5.0
"""For the first connection."""


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all checks of one extender found.

    Attributes:
        url: The extender.
        node_cache_capable: Whether names were sent, not whole nodes.
        versions: The versions of kube-scheduler whose traffic was sent.
        sent: How many requests were sent, by verb.
        outcomes: Of all checks, in order.
    """

    url: str
    node_cache_capable: bool
    versions: tuple[str, ...]
    sent: Mapping[str, int]
    outcomes: tuple[Outcome, ...]

    def count(self, severity: Severity) -> int:
        """Return how many findings have a severity."""
        found = (f for outcome in self.outcomes for f in outcome.findings)
        return sum(1 for finding in found if finding.severity == severity)

    @property
    def is_clean(self) -> bool:
        """Whether nothing but style was found."""
        return not any(map(self.count, set(Severity) - {Severity.STYLE}))


async def run_checks(
    requests: Requests, *, slow: bool = False, checks: Sequence[Check] | None = None
) -> Report:
    """Run the checks that concern an extender.

    Args:
        requests: What is sent, and to which extender; verbs that are empty are not checked.
        slow: Whether checks that take minutes run too.
        checks: Which checks; by default all.

    Raises:
        ConfigurationError: There is nothing at the URL, or a file for TLS cannot be used.
    """
    config = requests.config
    async with Client(config) as client:
        probe = Probe(client=client, requests=requests)
        await _reachable(client)
        checks = all_checks() if checks is None else checks
        skipped = {check.name: _skipped(check, probe, slow=slow) for check in checks}
        for check in checks:
            if check.run and not skipped[check.name]:
                await check.run(probe)
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in probe.findings:
        found[finding.check].append(finding)
    return Report(
        url=config.url_prefix,
        node_cache_capable=config.node_cache_capable,
        versions=tuple(requests.versions()),
        sent={str(verb): count for verb, count in probe.sent.items()},
        outcomes=tuple(
            Outcome(
                check=check.name,
                verb=check.verb or "",
                about=check.about,
                docs=check.docs,
                skipped="" if found[check.name] else skipped[check.name],
                findings=merged(found[check.name]),
            )
            for check in checks
        ),
    )


def _skipped(check: Check, probe: Probe, *, slow: bool) -> str:
    """Return why a check does not run, "" if it does."""
    if check.verb and not probe.client.offers(check.verb):
        return "asked for with --bind only" if check.verb == "bind" else f"no {check.verb} verb"
    if check.needs_resources and not probe.requests.resource:
        return "no managedResources"
    if check.is_slow and not slow:
        return "asked for with --slow only"
    return ""


async def _reachable(client: Client) -> None:
    """Raise an error if nothing accepts connections."""
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await connected(client)
    except (OSError, TimeoutError) as error:
        raise ConfigurationError(
            f"cannot connect to {client.config.url_prefix}: "
            f"{error or f'no answer in {SECONDS:g} s'}; does the extender run, and is its "
            "certificate signed by --ca-file?"
        ) from error
    writer.close()
