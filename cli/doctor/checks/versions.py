"""Checks versions, of processes, plugins and kube-scheduler, and clocks."""

import re
from collections.abc import Iterator

from cli.doctor.check import Finding, listed, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import Missing, NotReadError, known
from cli.shared.gateway.pods import Object, name_of, scheduler_in
from moorage import __version__

OLDEST, NEWEST = 30, 37
"""The minor versions of kube-scheduler 1.x whose traffic Moorage is tested with."""

OLDER = 1
"""Minor versions that kube-scheduler may be behind the API server."""

MINOR = re.compile(r"v?1\.(?P<minor>\d+)")

TOLERATED = 5.0
"""Seconds that two clocks may differ: answers take time, and one has whole seconds only."""


def versions(installation: Installation) -> Iterator[Finding]:
    """All processes and this command have one version, and replicas the same plugins."""
    found: dict[str, list[str]] = {}
    for name, version in _versions(installation):
        found.setdefault(version, []).append(name)
    if len(found) > 1:
        shown = "; ".join(f"{version}: {listed(names)}" for version, names in found.items())
        yield warning(
            f"versions differ: {shown}",
            "wait for the rollout, or give all Deployments the same image; install this command "
            "of the same version",
        )
    for pool in installation.replicas["services"]:
        by_plugin: dict[str, dict[str, str]] = {}
        for replica in pool["replicas"]:
            for plugin in replica["plugins"]:
                by_plugin.setdefault(plugin["name"], {})[replica["place"]] = plugin["version"]
        for name, by_place in by_plugin.items():
            if len(set(by_place.values())) > 1:
                shown = listed([f"{version} at {place}" for place, version in by_place.items()])
                yield warning(
                    f"replicas of {pool['service']} have different versions of {name}: {shown}",
                    "wait for the rollout, or give all replicas the same plugins",
                )
            elif len(by_place) < len(pool["replicas"]):
                yield problem(
                    f"only {listed(list(by_place))} of {len(pool['replicas'])} replicas of "
                    f"{pool['service']} have plugin {name}",
                    "give all replicas the same plugins",
                )


def _versions(installation: Installation) -> Iterator[tuple[str, str]]:
    """Yield who has which version."""
    seen = installation.replicas
    yield "gateway", seen["moorageVersion"]
    yield "this command", __version__
    for pool in seen["services"]:
        for replica in pool["replicas"]:
            if replica["moorageVersion"]:
                yield f"{pool['service']} at {replica['place']}", replica["moorageVersion"]
    for place, version in seen["binder"]["moorageVersions"].items():
        yield f"binder at {place}", version
    for name, process in installation.processes.items():
        if not isinstance(process, Missing) and process.service == "gateway":
            for (version,) in process.metrics.values_of("moorage_build_info", "version"):
                yield name, version


def scheduler_version(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler is of the API server's minor version or one behind, and of a tested one."""
    server = _minor(known(installation.api_server).version)
    pods = [pod for each in installation.schedulers for pod in each.pods[:1]]
    if not pods:
        raise NotReadError("no pod of a kube-scheduler with a configuration of its own was found")
    for pod in pods:
        name, minor = name_of(pod), _minor(_tag(pod))
        if minor is None or server is None:
            raise NotReadError(f"the image of {name} names no version: {_tag(pod)}")
        change = f"set its image to kube-scheduler v1.{server}"
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


def clocks(installation: Installation) -> Iterator[Finding]:
    """The clocks of this machine, the gateway and the API server differ by at most 5 s."""
    server = known(installation.api_server).skew
    if abs(server) > TOLERATED:
        yield warning(
            f"the clock of this machine is {abs(server):.0f} s {_side(-server)} the API server's",
            "synchronize it (NTP): `moorage certs` would make certificates of the wrong time here",
        )
    skew = known(installation.report.skew) - server
    if abs(skew) > TOLERATED:
        yield warning(
            f"the gateway's clock is {abs(skew):.0f} s {_side(skew)} the API server's: "
            "certificates and tokens may count as expired or not yet valid",
            "synchronize the clocks of the nodes (NTP)",
        )


def _side(skew: float) -> str:
    return "ahead of" if skew > 0 else "behind"


def _minor(version: str) -> int | None:
    match = MINOR.match(version)
    return int(match["minor"]) if match else None


def _tag(pod: Object) -> str:
    container = scheduler_in(pod)
    image = str(container["image"]).partition("@")[0] if container is not None else ""
    return image.rpartition("/")[2].partition(":")[2]
