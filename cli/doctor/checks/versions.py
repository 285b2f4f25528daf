"""Checks versions: of Moorage, of plugins across replicas, of kube-scheduler beside the cluster."""

import re
from collections.abc import Iterator

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning, worst
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, known
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import name_of, scheduler_in

OLDEST, NEWEST = 30, 37
"""The minor versions of kube-scheduler 1.x whose traffic Moorage is tested with."""

OLDER = 1
"""Minor versions that kube-scheduler may be behind the API server."""

MINOR = re.compile(r"v?1\.(?P<minor>\d+)")


def processes(installation: Installation) -> Result:
    """Compare the versions of all processes."""
    found: dict[str, list[str]] = {}
    for name, version in _versions(installation):
        found.setdefault(version, []).append(name)
    if len(found) > 1:
        shown = "; ".join(f"{version}: {listed(names)}" for version, names in found.items())
        return warning(
            f"processes have different versions: {shown}",
            "wait for the rollout, or give all Deployments the same image",
        )
    ((version, names),) = found.items()
    return ok(f"{listed(names)}: {version}")


def _versions(installation: Installation) -> Iterator[tuple[str, str]]:
    """Yield the gateway that decides, its services, and other gateways, with their versions."""
    seen = installation.replicas
    yield "gateway", seen.moorage_version
    for pool in seen.services:
        for replica in pool.replicas:
            if replica.moorage_version:
                yield f"{pool.service} at {replica.place}", replica.moorage_version
    for place, version in seen.binder.moorage_versions.items():
        yield f"binder at {place}", version
    for name, process in installation.processes.items():
        if not isinstance(process, Missing) and process.service == "gateway" and process.version:
            yield name, process.version


def plugins(installation: Installation) -> Result:
    """Compare the plugins of the replicas of each service."""
    results = []
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
                results.append(
                    warning(
                        f"replicas of {pool.service} have different versions of {name}: "
                        f"{listed(shown)}",
                        "wait for the rollout, or give all replicas the same plugins",
                    )
                )
            elif len(by_place) < len(pool.replicas):
                results.append(
                    problem(
                        f"only {listed(list(by_place))} of {len(pool.replicas)} replicas of "
                        f"{pool.service} have plugin {name}",
                        "give all replicas the same plugins",
                    )
                )
    return worst(results, ok(f"replicas have the same plugins: {listed(counts)}"))


def scheduler(installation: Installation) -> Result:
    """Compare kube-scheduler's version with the API server's, and with what is tested."""
    server = _minor(known(installation.api_server).version)
    results = []
    seen = []
    for each in installation.schedulers:
        for pod in each.pods[:1]:
            tag = _tag(pod)
            minor = _minor(tag)
            if minor is None or server is None:
                results.append(unchecked(f"the image of {name_of(pod)} names no version: {tag}"))
                continue
            seen.append(f"{name_of(pod)} is 1.{minor}")
            results.append(_compared(name_of(pod), minor, server))
    if not seen and not results:
        return unchecked("no pod of a kube-scheduler with a configuration of its own was found")
    return worst(results, ok(f"{listed(seen)}, the API server 1.{server}"))


def _compared(name: str, minor: int, server: int) -> Result:
    change = f"set its image to kube-scheduler v1.{server}"
    if minor > server:
        return problem(f"{name} is 1.{minor}, newer than the API server, 1.{server}", change)
    if minor < server - OLDER:
        return warning(
            f"{name} is 1.{minor}, more than one minor version behind the API server, 1.{server}",
            change,
        )
    if not OLDEST <= minor <= NEWEST:
        return warning(
            f"{name} is 1.{minor}; Moorage is tested with 1.{OLDEST} to 1.{NEWEST}",
            "run `moorage conformance` with its configuration before you rely on it",
        )
    return ok(name)


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
        about="All processes are of one version of Moorage.",
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
)
