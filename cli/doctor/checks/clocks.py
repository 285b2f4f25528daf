"""Checks clocks: of the API server, of the gateway, and those that renew Leases."""

from datetime import datetime

from cli.doctor.check import Check, Result, ok, warning, worst
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import known

TOLERATED = 5.0
"""Seconds that two clocks may differ: answers take time, and one has whole seconds only."""


def gateway(installation: Installation) -> Result:
    """Compare the gateway's clock with the API server's."""
    skew = known(installation.report.skew) - known(installation.api_server).skew
    if abs(skew) > TOLERATED:
        return warning(
            f"the gateway's clock is {abs(skew):.0f} s {_side(skew)} the API server's: "
            "certificates and tokens may count as expired or not yet valid, and times in decisions "
            "are wrong",
            "synchronize the clocks of the nodes (NTP)",
        )
    return ok(f"the clocks of gateway and API server differ by {abs(skew):.1f} s")


def local(installation: Installation) -> Result:
    """Compare the clock of this machine with the API server's."""
    skew = -known(installation.api_server).skew
    if abs(skew) > TOLERATED:
        return warning(
            f"the clock of this machine is {abs(skew):.0f} s {_side(skew)} the API server's",
            "synchronize it (NTP): `moorage certs` would make certificates of the wrong time here",
        )
    return ok(f"the clocks of this machine and of the API server differ by {abs(skew):.1f} s")


def leases(installation: Installation) -> Result:
    """Look for Leases that were renewed in the future."""
    now = installation.now.timestamp() + known(installation.api_server).skew
    results = []
    found = installation.objects.of("leases")
    for lease in found:
        renewed = (lease.get("spec") or {}).get("renewTime")
        if not renewed:
            continue
        ahead = datetime.fromisoformat(renewed).timestamp() - now
        if ahead > TOLERATED:
            holder = lease["spec"].get("holderIdentity") or "nobody"
            results.append(
                warning(
                    f"Lease {lease['metadata']['name']} was renewed {ahead:.0f} s in the future, "
                    f"by {holder}",
                    "synchronize the clock of that pod's node (NTP)",
                )
            )
    return worst(results, ok(f"none of {len(found)} Leases was renewed in the future"))


def _side(skew: float) -> str:
    return "ahead of" if skew > 0 else "behind"


CHECKS = (
    Check(
        name="clock-gateway",
        about=f"The clocks of gateway and API server differ by at most {TOLERATED:g} s.",
        run=gateway,
    ),
    Check(
        name="clock-local",
        about=f"The clocks of this machine and the API server differ by at most {TOLERATED:g} s.",
        run=local,
    ),
    Check(
        name="clock-leases",
        about="No Lease in the gateway's namespace was renewed in the future.",
        run=leases,
    ),
)
