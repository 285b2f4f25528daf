"""Checks what the gateway's namespace needs: a quota for the priority class."""

from cli.doctor.check import Check, Result, listed, ok, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import SYSTEM, Object
from cli.doctor.installation.pods import name_of

CLASSES = ("system-cluster-critical", "system-node-critical")


def quota(installation: Installation) -> Result:
    """Look whether a quota allows pods of the critical priority classes."""
    used = {
        each["spec"]["template"]["spec"].get("priorityClassName")
        for each in installation.objects.of("deployments")
    }
    critical = [name for name in CLASSES if name in used]
    if not critical or installation.namespace == SYSTEM:
        return ok("no Deployment has a priority class that needs a quota")
    for each in installation.objects.of("resourcequotas"):
        if any(_is_for(each, name) for name in critical):
            return _with_room(each)
    return warning(
        f"Deployments have the priority class {critical[0]}, and namespace "
        f"{installation.namespace} has no ResourceQuota for it: some clusters, GKE among them, "
        "create no such pods then",
        "apply the ResourceQuota of deploy/ (critical-pods)",
    )


def _with_room(found: Object) -> Result:
    status = found.get("status") or {}
    hard = (found["spec"].get("hard") or {}).get("pods")
    used = (status.get("used") or {}).get("pods")
    if hard is not None and used is not None and int(used) >= int(hard):
        return problem(
            f"ResourceQuota {name_of(found)} is used up: {used} of {hard} pods",
            "raise its limit",
        )
    return ok(f"ResourceQuota {name_of(found)} allows {listed([str(hard)])} pods of the class")


def _is_for(found: Object, name: str) -> bool:
    scopes = (found["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    return any(
        each.get("scopeName") == "PriorityClass"
        and (each.get("operator") == "Exists" or name in (each.get("values") or ()))
        for each in scopes
    )


CHECKS = (
    Check(
        name="quota",
        about="A ResourceQuota allows pods of the critical priority classes, where the cluster "
        "limits them.",
        run=quota,
    ),
)
