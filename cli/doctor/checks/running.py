"""Checks what runs: processes, pods, who leads, the policy, plugins."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime

from cli.doctor.check import Finding, listed, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import Missing, NotReadError, known
from cli.shared.gateway.pods import Object, is_active, is_ready, name_of, runs, scheduler_in
from sandbox.scheduler.config import DEFAULT_NAME

LEASE_SECONDS = 15

STANDS_BY = "holds the Lease"
"""Part of the reason of a gateway that is not ready since another one leads."""

UNSTARTED = re.compile(r"plugin (\S+) of profile \S+ does not start: ")

FEWEST = 20
"""Cycles before it counts that a plugin never has an effect."""

ROUNDED = 0.1
"""The share of cycles from which rounding matters."""

CHANGES = {
    "ImagePullBackOff": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ErrImagePull": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ContainerCreating": "see its events with kubectl describe; without certificates run "
    "`moorage certs --secrets NAMESPACE | kubectl apply -f -`",
    "CrashLoopBackOff": "see its log: kubectl logs --previous",
    "Unschedulable": "give it a node: kubectl describe has what each node lacks",
    "quota": "apply the ResourceQuota critical-pods: without it some clusters, GKE among them, "
    "create no pods of this priority class",
}
"""What to do about a pod that is not ready, by a word of the reason."""


def processes_ready(installation: Installation) -> Iterator[Finding]:
    """The gateway answers, and `/readyz` of each process is well and without notes.

    It says whether there are replicas and a policy, whether the state is fresh, whether plugins
    fail in the background, and whether certificates are about to expire.
    """
    gateway = installation.gateway
    if isinstance(gateway, Missing):
        yield problem(
            f"the gateway does not answer: {gateway.reason}",
            "see whether its pod runs (kubectl -n NAMESPACE get pods), and whether you may ask it",
        )
        return
    own = f"{gateway.pod.rpartition('/')[2]} (gateway)"
    others = {name: each for name, each in installation.processes.items() if name != own}
    for name, process in {gateway.place: gateway.process, **others}.items():
        if isinstance(process, Missing):
            continue
        for check, reason in process.problems.items():
            if STANDS_BY not in reason:
                yield problem(
                    f"{name} is not ready: {check}: {reason}",
                    _mend(reason) or "do what its reason asks for; its log has more",
                )
        for check, note in process.notes.items():
            yield warning(f"{name}: {check}: {note}", _mend(note) or "see the log of that process")
    known(gateway.process)


def _mend(reason: str) -> str:
    """Return what helps if a plugin does not start; "" if it is something else."""
    if not (plugin := UNSTARTED.search(reason)):
        return ""
    return f"mend plugin {plugin[1]} there, or take it out of the policy; it is tried again"


def pods_ready(installation: Installation) -> Iterator[Finding]:
    """The Deployments have the pods that they ask for; otherwise the reason of one."""
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
    """Yield what pods of a Deployment wait for, and why it has none."""
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
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        kind = condition.get("type"), condition.get("status")
        if kind in (("ReplicaFailure", "True"), ("Available", "False")):
            yield str(condition.get("message", ""))


def leader(installation: Installation) -> Iterator[Finding]:
    """Where gateways or kube-schedulers elect a leader, one renews the Lease."""
    own = installation.replicas["gateway"]
    gateways = [p for p in installation.objects.of("pods") if runs(p, "gateway") and is_active(p)]
    elects = own["leaderElection"] == "lease"
    wanted = {own["leaseName"]: "gateway"} if elects else {}
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
    for scheduler in installation.schedulers:
        if not isinstance(scheduler.configuration, Missing):
            election = scheduler.configuration.leader_election
            here = election.get("resourceNamespace") == installation.namespace
            if here and election.get("leaderElect", True):
                wanted[str(election.get("resourceName"))] = "kube-scheduler"
    leases = {each["metadata"]["name"]: each for each in installation.objects.of("leases")}
    now = installation.now.timestamp() + known(installation.api_server).skew
    for name, who in wanted.items():
        spec = leases.get(name, {}).get("spec") or {}
        holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
        age = now - datetime.fromisoformat(renewed).timestamp() if renewed else float("inf")
        if not holder or age > 2 * spec.get("leaseDurationSeconds", LEASE_SECONDS):
            last = f"last renewed {age:.0f} s ago" if renewed else "there is none"
            yield problem(
                f"no {who} holds the Lease {name}: {last}",
                f"see the log of {who}: it needs get, create and update for this Lease",
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
    metrics = known(installation.report.process).metrics
    cycles = metrics.grown("moorage_extender_requests_total", verb="prioritize", result="ok")
    for (plugin,) in metrics.values_of("moorage_plugin_failures_total", "plugin"):
        if failed := metrics.grown("moorage_plugin_failures_total", plugin=plugin):
            yield warning(
                f"plugin {plugin} has failed in {failed:.0f} cycles, which went on without it",
                "look for the cause in `moorage top`, and in the service's log",
            )
    for (plugin,) in metrics.values_of("moorage_neutral_scores_total", "plugin"):
        if metrics.grown("moorage_neutral_scores_total", plugin=plugin) >= cycles >= FEWEST:
            yield warning(
                f"plugin {plugin} has affected the order of nodes in none of {cycles:.0f} cycles: "
                "all nodes had the same score, or it skipped the pod",
                "see its scores in the inspector; if it measures, whether there are measurements",
            )
    rounded = metrics.grown("moorage_rounded_scores_total")
    if cycles >= FEWEST and rounded > cycles * ROUNDED:
        yield warning(
            f"in {rounded:.0f} of {cycles:.0f} cycles rounding made worse nodes equal to the best",
            "raise the policy's scoreScale, and the weight in kube-scheduler's configuration",
        )


def own_pods(installation: Installation) -> Iterator[Finding]:
    """Moorage's own pods are not scheduled by a profile that asks Moorage."""
    try:
        profiles = {
            name
            for _, configuration in installation.configurations
            if any(not e.ignorable and not e.managed_resources for e in configuration.extenders)
            for name in configuration.scheduler_names
        }
    except NotReadError:
        profiles = set(installation.policy["profiles"])
    deployments, pods = installation.objects.of("deployments"), installation.objects.of("pods")
    named = [
        *((f"Deployment {name_of(d)}", d["spec"]["template"]["spec"]) for d in deployments),
        *((f"pod {name_of(pod)}", pod["spec"]) for pod in pods),
    ]
    ours = [name for name, spec in named if spec.get("schedulerName", DEFAULT_NAME) in profiles]
    if ours:
        yield problem(
            f"{listed(ours)} is scheduled by a profile that asks Moorage: it cannot start while "
            "Moorage is down",
            f"set schedulerName: {DEFAULT_NAME}; where the cluster's own scheduler asks Moorage, "
            "set ignorable: true, or run a second scheduler for Moorage's pods",
        )
