"""Checks what each ServiceAccount may do, by SubjectAccessReviews."""

from collections.abc import Callable, Iterable

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation import needs
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.rights import Right

Needs = Callable[[Installation], Iterable[Right]]


def _needed(asked: Needs, change: str, what: str) -> Callable[[Installation], Result]:
    """Return a check that all rights exist which *asked* yields."""

    def run(installation: Installation) -> Result:
        wanted = list(dict.fromkeys(asked(installation)))
        lacking = [each for each in wanted if not installation.may(each)]
        if lacking:
            return problem(f"{_who(lacking[0])} may not {listed(list(map(str, lacking)))}", change)
        if not wanted:
            return unchecked(f"no pod was found that needs rights for {what}")
        return ok(f"{_who(wanted[0])} has the {len(wanted)} rights for {what}")

    return run


def plugins(installation: Installation) -> Result:
    """Look whether the gateway may read what enabled plugins read."""
    wanted = needs.readers(installation)
    if not wanted:
        return ok("no enabled plugin reads further kinds of objects")
    lacking = [each for each in wanted if not installation.may(each)]
    if lacking:
        first = lacking[0]
        return problem(
            f"{_who(first)} may not {listed(list(map(str, lacking)))}, which plugin "
            f"{wanted[first]} reads: the gateway is not ready",
            f"bind a Role with list and watch for {first.resource} in API group "
            f'"{first.group}" to its ServiceAccount',
        )
    return ok(f"the gateway has the {len(wanted)} rights that enabled plugins need")


def leases(installation: Installation) -> Result:
    """Look whether gateways and kube-schedulers may renew their Leases."""
    wanted = list(dict.fromkeys(needs.needs_of_leases(installation)))
    if not wanted:
        return ok("nothing elects a leader by a Lease")
    lacking = [each for each in wanted if not installation.may(each)]
    if lacking:
        return problem(
            f"{_who(lacking[0])} may not {listed(list(map(str, lacking)))}: it waits for ever and "
            "never leads",
            "bind the Role for its Lease: the ClusterRole system:kube-scheduler allows only the "
            "Lease named kube-scheduler",
        )
    return ok(f"those who elect a leader have the {len(wanted)} rights for it")


def least(installation: Installation) -> Result:
    """Look whether processes that run plugin code have rights that they do not need."""
    unneeded = list(dict.fromkeys(needs.unneeded(installation)))
    if not unneeded:
        return unchecked("no pod of filter or scorer was found")
    held = [each for each in unneeded if installation.may(each)]
    if held:
        return warning(
            f"{_who(held[0])} runs plugin code and may {listed(list(map(str, held)))}",
            "remove the binding: filter and scorer need no access to the API",
        )
    return ok("filter and scorer, which run plugin code, may not read or bind pods")


def _who(right: Right) -> str:
    _, _, namespace, name = right.user.split(":")
    return f"ServiceAccount {namespace}/{name}"


ROLE = "apply the RBAC of deploy/ again, or bind a ClusterRole with these rights"

CHECKS = (
    Check(
        name="rights-gateway",
        about="The gateway may list and watch nodes, pods and DeviceClasses.",
        run=_needed(needs.needs_of_gateway, ROLE, "the cluster's state"),
    ),
    Check(
        name="rights-plugins",
        about="The gateway may list and watch what enabled plugins declare in `reads`.",
        run=plugins,
    ),
    Check(
        name="rights-binder",
        about="The binder may bind pods, write Events and ask about lost binds.",
        run=_needed(needs.needs_of_binder, ROLE, "binds"),
    ),
    Check(
        name="rights-tokens",
        about="Gateway and binder may ask about bearer tokens (system:auth-delegator).",
        run=_needed(
            needs.needs_of_reviews,
            "bind the ClusterRole system:auth-delegator to it; until then only certificates count",
            "bearer tokens",
        ),
    ),
    Check(
        name="rights-leases",
        about="Those who elect a leader may create and renew their Lease.",
        run=leases,
    ),
    Check(
        name="rights-scheduler",
        about="A second kube-scheduler has the rights of system:kube-scheduler and "
        "system:volume-scheduler.",
        run=_needed(
            needs.needs_of_schedulers,
            "bind the ClusterRoles system:kube-scheduler and system:volume-scheduler to it",
            "scheduling",
        ),
    ),
    Check(
        name="rights-least",
        about="Filter and scorer, which run plugin code, have no rights.",
        run=least,
    ),
)
