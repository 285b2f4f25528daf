"""Checks what the cluster has against the rendered release, by object and field."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Finding, listed, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import known
from cli.doctor.installation.release import CONTENT_OF_USERS, Release, differences
from cli.shared.gateway.pods import Object

ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
"""Kinds that name the profiles of the users' policy."""

OPTIONAL = ("HorizontalPodAutoscaler", "PodDisruptionBudget", "ResourceQuota", *ADMISSION)
"""Kinds without which pods are placed too."""

ROLES = ("Role", "ClusterRole")
RIGHTS = (*ROLES, "RoleBinding", "ClusterRoleBinding")

NETWORK = ("Service", "NetworkPolicy")
"""Kinds that differ at the price of connections that fail."""

OUTSIDE = ("ipBlock", "namespaceSelector")
"""Peers that users choose: where the API server, DNS and Prometheus are."""


def release_objects(installation: Installation) -> Iterator[Finding]:
    """The cluster has every object of the layout's install.yaml."""
    release = known(installation.release)
    absent = [wanted for wanted, found in release.pairs if found is None]
    policies = [each for each, _ in release.pairs if each["kind"] == "NetworkPolicy"]
    if all(each in absent for each in policies):  # as networkPolicy.enabled=false has it
        absent = [each for each in absent if each not in policies]
    for result, is_optional in ((problem, False), (warning, True)):
        names = [_name(each) for each in absent if (each["kind"] in OPTIONAL) == is_optional]
        if names:
            yield result(f"the cluster lacks {listed(names)}", _apply(release))
    for _, found in release.pairs:
        known(found)


def release_rights(installation: Installation) -> Iterator[Finding]:
    """Roles allow what they allow in the release and no more, and are bound to the same."""
    release = known(installation.release)
    for wanted, live in release.pairs:
        if wanted["kind"] not in RIGHTS or live is None:
            continue
        name, found = _name(wanted), known(live)
        if wanted["kind"] not in ROLES:
            for difference in differences(wanted, found):
                yield problem(f"{name}: {difference}", _apply(release))
        if less := sorted(_allowed(wanted) - _allowed(found)):
            yield problem(f"{name} does not allow: {listed(less)}", _apply(release))
        if more := sorted(_allowed(found) - _allowed(wanted)):
            yield warning(
                f"{name} allows more than the release: {listed(more)}",
                f"{_apply(release)}, unless a plugin of yours needs it",
            )


def release_fields(installation: Installation) -> Iterator[Finding]:
    """Services, NetworkPolicies, Deployments and the other objects have the release's fields.

    Images, replicas, resources, and where pods go are yours, and what is added does not count.
    """
    release = known(installation.release)
    for wanted, live in release.pairs:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        is_content = kind in ADMISSION or (kind == "ConfigMap" and name in CONTENT_OF_USERS)
        if kind in RIGHTS or is_content or live is None:
            continue
        for difference in differences(_between_pods(wanted), _between_pods(known(live))):
            text = f"{_name(wanted)}: {difference}"
            if kind in NETWORK:
                yield problem(f"{text}: connections between processes may fail", _apply(release))
            else:
                yield warning(text, f"{_apply(release)}, unless it is meant to differ")


def _name(obj: Object) -> str:
    """Return the kind, and the name with the namespace."""
    metadata = obj["metadata"]
    place = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{obj['kind']} {place}{metadata['name']}"


def _apply(release: Release) -> str:
    return f"apply deploy/install/{release.layout}.yaml again, or give the layout with --layout"


def _between_pods(obj: Object) -> Object:
    """Return an object; a NetworkPolicy with the rules for pods of the namespace only."""
    if obj["kind"] != "NetworkPolicy":
        return obj
    spec = dict(obj["spec"])
    for direction, side in (("ingress", "from"), ("egress", "to")):
        rules = (rule for rule in spec.get(direction) or () if _is_inside(rule.get(side)))
        spec[direction] = list(rules)
    return {**obj, "spec": spec}


def _allowed(obj: Object) -> set[str]:
    """Return what a Role allows, one verb on one resource each, in words."""
    found = set()
    for rule in obj.get("rules") or ():
        for verb in rule["verbs"]:
            found |= {f"{verb} {url}" for url in rule.get("nonResourceURLs") or ()}
            for group in rule.get("apiGroups") or ("",):
                for resource in rule.get("resources") or ():
                    full = f"{resource}.{group}" if group else resource
                    for name in rule.get("resourceNames") or ("",):
                        found.add(f"{verb} {full} {name}".strip())
    return found


def _is_inside(peers: Sequence[Mapping[str, object]] | None) -> bool:
    return not any(field in peer for peer in peers or () for field in OUTSIDE)
