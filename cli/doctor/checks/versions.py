"""Checks versions, of processes, plugins and kube-scheduler, and clocks."""

import re
from collections.abc import Iterator
from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import Missing, Object, known
from cli.doctor.installation.pods import name_of, scheduler_in
from moorage import __version__

OLDEST, NEWEST = 30, 37
"""The minor versions of kube-scheduler 1.x whose traffic Moorage is tested with."""

OLDER = 1
"""Minor versions that kube-scheduler may be behind the API server."""

MINOR = re.compile(r"v?1\.(?P<minor>\d+)")

TOLERATED = 5.0
"""Seconds that two clocks may differ: answers take time, and one has whole seconds only."""


def processes(installation: Installation) -> Iterator[Result]:
    """Compare the versions of all processes and of this command."""
    found: dict[str, list[str]] = {}
    for name, version in _versions(installation):
        found.setdefault(version, []).append(name)
    shown = "; ".join(f"{version}: {listed(names)}" for version, names in found.items())
    if len(found) > 1:
        yield warning(
            f"versions differ: {shown}",
            "wait for the rollout, or give all Deployments the same image; install this command "
            "of the same version",
        )
    yield ok(shown)


def _versions(installation: Installation) -> Iterator[tuple[str, str]]:
    """Yield who has which version."""
    seen = installation.replicas
    yield "gateway", seen.moorage_version
    yield "this command", __version__
    for pool in seen.services:
        for replica in pool.replicas:
            if replica.moorage_version:
                yield f"{pool.service} at {replica.place}", replica.moorage_version
    for place, version in seen.binder.moorage_versions.items():
        yield f"binder at {place}", version
    for name, process in installation.processes.items():
        if not isinstance(process, Missing) and process.service == "gateway" and process.version:
            yield name, process.version


def plugins(installation: Installation) -> Iterator[Result]:
    """Compare the plugins of the replicas of each service."""
    counts = []
    for pool in installation.replicas.services:
        counts.append(f"{len(pool.replicas)} of {pool.service}")
        versions: dict[str, dict[str, str]] = {}
        for replica in pool.replicas:
            for plugin in replica.plugins:
                versions.setdefault(plugin.name, {})[replica.place] = plugin.version
        for name, by_place in versions.items():
            if len(set(by_place.values())) > 1:
                shown = [f"{version} at {place}" for place, version in by_place.items()]
                yield warning(
                    f"replicas of {pool.service} have different versions of {name}: "
                    f"{listed(shown)}",
                    "wait for the rollout, or give all replicas the same plugins",
                )
            elif len(by_place) < len(pool.replicas):
                yield problem(
                    f"only {listed(list(by_place))} of {len(pool.replicas)} replicas of "
                    f"{pool.service} have plugin {name}",
                    "give all replicas the same plugins",
                )
    yield ok(f"replicas have the same plugins: {listed(counts)}")


def scheduler(installation: Installation) -> Iterator[Result]:
    """Compare kube-scheduler's version with the API server's, and with what is tested."""
    server = _minor(known(installation.api_server).version)
    seen = []
    for pod in (pod for each in installation.schedulers for pod in each.pods[:1]):
        minor = _minor(_tag(pod))
        if minor is None or server is None:
            yield unchecked(f"the image of {name_of(pod)} names no version: {_tag(pod)}")
            continue
        name, change = name_of(pod), f"set its image to kube-scheduler v1.{server}"
        seen.append(f"{name} is 1.{minor}")
        if minor > server:
            yield problem(f"{name} is 1.{minor}, newer than the API server, 1.{server}", change)
        elif minor < server - OLDER:
            yield warning(
                f"{name} is 1.{minor}, more than one minor version behind the API server, "
                f"1.{server}",
                change,
            )
        elif not OLDEST <= minor <= NEWEST:
            yield warning(
                f"{name} is 1.{minor}; Moorage is tested with 1.{OLDEST} to 1.{NEWEST}",
                "run `moorage conformance` with its configuration before you rely on it",
            )
    if not seen:
        yield unchecked("no pod of a kube-scheduler with a configuration of its own was found")
    yield ok(f"{listed(seen)}, the API server 1.{server}")


def clocks(installation: Installation) -> Iterator[Result]:
    """Compare the clocks of this machine, the gateway and those who renew Leases."""
    server = known(installation.api_server).skew
    if abs(server) > TOLERATED:
        yield warning(
            f"the clock of this machine is {abs(server):.0f} s {_side(-server)} the API server's",
            "synchronize it (NTP): `moorage certs` would make certificates of the wrong time here",
        )
    now = installation.now.timestamp() + server
    for lease in installation.objects.of("leases"):
        spec = lease.get("spec") or {}
        renewed = spec.get("renewTime")
        ahead = datetime.fromisoformat(renewed).timestamp() - now if renewed else 0
        if ahead > TOLERATED:
            yield warning(
                f"Lease {lease['metadata']['name']} was renewed {ahead:.0f} s in the future, by "
                f"{spec.get('holderIdentity') or 'nobody'}",
                "synchronize the clock of that pod's node (NTP)",
            )
    skew = known(installation.report.skew) - server
    if abs(skew) > TOLERATED:
        yield warning(
            f"the gateway's clock is {abs(skew):.0f} s {_side(skew)} the API server's: "
            "certificates and tokens may count as expired or not yet valid",
            "synchronize the clocks of the nodes (NTP)",
        )
    yield ok(f"the clocks of gateway and API server differ by {abs(skew):.1f} s")


def _side(skew: float) -> str:
    return "ahead of" if skew > 0 else "behind"


def _minor(version: str) -> int | None:
    match = MINOR.match(version)
    return int(match["minor"]) if match else None


def _tag(pod: Object) -> str:
    container = scheduler_in(pod)
    image = str(container["image"]).partition("@")[0] if container is not None else ""
    return image.rpartition("/")[2].partition(":")[2]


CHECKS = (
    Check(
        name="versions-processes",
        about="All processes and this command are of one version of Moorage.",
        run=processes,
    ),
    Check(
        name="versions-plugins",
        about="All replicas of a service have the same plugins, in the same versions.",
        run=plugins,
    ),
    Check(
        name="versions-scheduler",
        about=f"kube-scheduler is of the API server's minor version or one behind, and one of "
        f"1.{OLDEST} to 1.{NEWEST}, which Moorage is tested with.",
        run=scheduler,
    ),
    Check(
        name="clocks",
        about=f"The clocks of this machine, the gateway, the API server and those who renew Leases "
        f"differ by at most {TOLERATED:g} s.",
        run=clocks,
    ),
)
