"""Checks what runs: processes, pods, who leads, the policy, plugins, versions."""

import hashlib
import re
from collections.abc import Iterator

from cli.doctor.check import Finding, listed, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import NotReadError
from cli.shared.gateway.pods import Object, is_active, is_ready, name_of, runs, scheduler_in
from moorage import __version__

STANDS_BY = "holds the Lease"
"""Part of the reason of a gateway that is not ready since another one leads."""

UNSTARTED = re.compile(r"plugin (\S+) of profile \S+ does not start: ")

OLDEST, NEWEST = 30, 37
"""The minor versions of kube-scheduler 1.x whose traffic Moorage is tested with."""

MINOR = re.compile(r"v?1\.(?P<minor>\d+)")

FEWEST = 20
"""Cycles before it counts that a plugin never has an effect."""

CHANGES = {
    "ImagePullBackOff": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ErrImagePull": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ContainerCreating": "see its events with kubectl describe; without certificates run "
    "`moorage certs --secrets NAMESPACE | kubectl apply -f -`",
    "CrashLoopBackOff": "see its log: kubectl logs --previous",
    "Unschedulable": "give it a node: kubectl describe has what each node lacks",
}
"""What to do about a pod that is not ready, by a word of the reason."""


def processes_ready(installation: Installation) -> Iterator[Finding]:
    """The gateway answers, and `/readyz` of each process is well and without notes.

    It says whether there are replicas and a policy, whether the state is fresh, whether plugins
    fail in the background, and whether certificates are about to expire.
    """
    gateway = installation.gateway
    if isinstance(gateway, NotReadError):
        yield problem(
            f"the gateway does not answer: {gateway}",
            "see whether its pod runs (kubectl -n NAMESPACE get pods), and whether you may ask it",
        )
        return
    own = f"{gateway.pod.rpartition('/')[2]} (gateway)"
    others = {name: each for name, each in installation.processes.items() if name != own}
    for name, process in {gateway.place: gateway.process, **others}.items():
        if isinstance(process, NotReadError):
            continue
        for check, reason in process.problems.items():
            if STANDS_BY not in reason:
                yield problem(
                    f"{name} is not ready: {check}: {reason}",
                    _mend(reason) or "do what its reason asks for; its log has more",
                )
        for check, note in process.notes.items():
            yield warning(f"{name}: {check}: {note}", _mend(note) or "see the log of that process")


def _mend(reason: str) -> str:
    """Return what helps if a plugin does not start; "" if it is something else."""
    if not (plugin := UNSTARTED.search(reason)):
        return ""
    return f"mend plugin {plugin[1]} there, or take it out of the policy; it is tried again"


def pods_ready(installation: Installation) -> Iterator[Finding]:
    """Each Deployment has all its pods ready; otherwise the report says why one is not."""
    for each in installation.objects.of("deployments"):
        wanted, status = each["spec"].get("replicas", 1), each.get("status") or {}
        ready = status.get("readyReplicas", 0)
        stands_by = each["metadata"]["name"] == "gateway" and wanted > 1 and ready
        if ready >= wanted or stands_by:
            continue
        reason = next(_reasons(installation, each), "")
        change = next((text for word, text in CHANGES.items() if word in reason), "")
        found = warning if ready else problem
        yield found(
            f"{ready} of {wanted} replicas of Deployment {name_of(each)} are ready"
            + (f": {reason}" if reason else ""),
            change or "kubectl describe the pods that are not, and see their logs",
        )


def _reasons(installation: Installation, deployment: Object) -> Iterator[str]:
    """Yield what pods of a Deployment wait for."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    for pod in installation.objects.of("pods"):
        own = pod["metadata"].get("labels") or {}
        if not (labels and labels.items() <= own.items()) or is_ready(pod):
            continue
        status = pod.get("status") or {}
        states = [
            state["state"]["waiting"]
            for kind in ("initContainerStatuses", "containerStatuses")
            for state in status.get(kind) or ()
            if (state.get("state") or {}).get("waiting")
        ]
        conditions = [c for c in status.get("conditions") or () if c.get("status") == "False"]
        for each in states or conditions:
            text = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
            yield f"{name_of(pod)}: {text or each.get('type')}"


def leader(installation: Installation) -> Iterator[Finding]:
    """Several gateways elect a leader, and none with leader election runs alone."""
    elects = installation.replicas["gateway"]["leaderElection"] == "lease"
    gateways = [p for p in installation.objects.of("pods") if runs(p, "gateway") and is_active(p)]
    alone = [pod for pod in gateways if scheduler_in(pod) is None]
    if elects and len(gateways) == 1:
        yield warning(
            "gateways elect a leader, and only 1 runs", "set replicas of the gateway to 2"
        )
    elif not elects and len(alone) > 1:
        yield problem(
            f"{len(alone)} gateways run without a Lease: each decides by itself",
            "apply the layout high-availability, or set replicas of the gateway to 1",
        )


def policy_active(installation: Installation) -> Iterator[Finding]:
    """The active policy is the one in the ConfigMap, and all of it has an effect."""
    active = installation.policy
    for text in active["warnings"]:
        yield warning(f"the policy has a part without effect: {text}", "correct or remove it")
    found = installation.objects.named("configmaps", "policy") or {}
    hashes = {
        hashlib.sha256(text.encode()).hexdigest() for text in (found.get("data") or {}).values()
    }
    if active["fileHash"] and hashes and active["fileHash"] not in hashes:
        yield warning(
            f"policy {active['revision']} is active, and ConfigMap {installation.namespace}/policy "
            "has another content",
            "wait a minute: the kubelet updates the file; then look at the gateway's log",
        )


def plugins_work(installation: Installation) -> Iterator[Finding]:
    """No plugin fails in cycles, and scores have an effect."""
    metrics = installation.report.process.metrics
    cycles = metrics.total("moorage_extender_requests_total", verb="prioritize", result="ok")
    for (plugin,) in metrics.values_of("moorage_plugin_failures_total", "plugin"):
        if failed := metrics.total("moorage_plugin_failures_total", plugin=plugin):
            yield warning(
                f"plugin {plugin} has failed in {failed:.0f} cycles, which went on without it",
                "look for the cause in the service's log",
            )
    for (plugin,) in metrics.values_of("moorage_neutral_scores_total", "plugin"):
        if metrics.total("moorage_neutral_scores_total", plugin=plugin) >= cycles >= FEWEST:
            yield warning(
                f"plugin {plugin} has affected the order of nodes in none of {cycles:.0f} cycles: "
                "all nodes had the same score, or it skipped the pod",
                "see its scores in the inspector; if it measures, whether there are measurements",
            )


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
        if not isinstance(process, NotReadError) and process.service == "gateway":
            for (version,) in process.metrics.values_of("moorage_build_info", "version"):
                yield name, version


def scheduler_version(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler is of a version that Moorage is tested with, not newer than the API server."""
    server = MINOR.match(installation.version)
    pods = [pod for each in installation.schedulers for pod in each.pods[:1]]
    if not pods:
        raise NotReadError("no pod of a kube-scheduler with a configuration of its own was found")
    for pod in pods:
        container = scheduler_in(pod)
        tag = str(container["image"]).partition("@")[0] if container is not None else ""
        found = MINOR.match(tag.rpartition("/")[2].partition(":")[2])
        if found is None or server is None:
            raise NotReadError(f"the image of {name_of(pod)} names no version: {tag}")
        minor, newest = int(found["minor"]), int(server["minor"])
        if minor > newest:
            yield problem(
                f"{name_of(pod)} is 1.{minor}, newer than the API server, 1.{newest}",
                f"set its image to kube-scheduler v1.{newest}",
            )
        elif not OLDEST <= minor <= NEWEST:
            yield warning(
                f"{name_of(pod)} is 1.{minor}; Moorage is tested with 1.{OLDEST} to 1.{NEWEST}",
                "try it in a test cluster before you rely on it",
            )
