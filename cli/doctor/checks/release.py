"""Checks what the cluster has against the rendered release: by object and field."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Check, Result, listed, ok, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import Missing, Object, known
from cli.doctor.installation.release import CONTENT_OF_USERS, Release, differences

OPTIONAL = ("HorizontalPodAutoscaler", "PodDisruptionBudget", "ResourceQuota")
"""Kinds without which pods are placed too."""

ROLES = ("Role", "ClusterRole")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")
NETWORK = ("Service", "NetworkPolicy")

OUTSIDE = ("ipBlock", "namespaceSelector")
"""Peers that users choose: where the API server, DNS and Prometheus are."""


def objects(installation: Installation) -> Iterator[Result]:
    """Look for objects that the cluster lacks."""
    release = known(installation.release)
    absent = [pair for pair in release.pairs if pair.found is None]
    policies = [pair for pair in release.pairs if pair.wanted["kind"] == "NetworkPolicy"]
    if all(pair.found is None for pair in policies):  # as networkPolicy.enabled=false has it
        absent = [pair for pair in absent if pair not in policies]
    needed = [pair.name for pair in absent if pair.wanted["kind"] not in OPTIONAL]
    others = [pair.name for pair in absent if pair.wanted["kind"] in OPTIONAL]
    if needed:
        yield problem(f"the cluster lacks {listed(needed)}", _apply(release))
    if others:
        yield warning(f"the cluster lacks {listed(others)}", _apply(release))
    unread = [pair.found.reason for pair in release.pairs if isinstance(pair.found, Missing)]
    if unread and not absent:
        known(Missing(unread[0]))
    yield ok(f"the {len(release.pairs)} objects of layout {release.layout} are there")


def rights(installation: Installation) -> Iterator[Result]:
    """Compare Roles and bindings."""
    release, count = known(installation.release), 0
    for pair, found in release.of(*ROLES):
        count += 1
        lacks = _rules(pair.wanted) - _rules(found)
        more = _rules(found) - _rules(pair.wanted)
        if lacks:
            yield problem(f"{pair.name} does not allow: {listed(sorted(lacks))}", _apply(release))
        if more:
            yield warning(
                f"{pair.name} allows more than the release: {listed(sorted(more))}",
                f"{_apply(release)}, unless a plugin of yours needs it",
            )
    for pair, found in release.of(*BINDINGS):
        count += 1
        for difference in differences(pair.wanted, found):
            yield problem(f"{pair.name}: {difference}", _apply(release))
    _must_be_read(release, (*ROLES, *BINDINGS))
    yield ok(f"{count} Roles and bindings are those of the release")


def network(installation: Installation) -> Iterator[Result]:
    """Compare Services and NetworkPolicies, but for the addresses that users choose."""
    release, count = known(installation.release), 0
    for pair, found in release.of(*NETWORK):
        count += 1
        wanted = pair.wanted
        if wanted["kind"] == "NetworkPolicy":
            wanted, found = _between_pods(wanted), _between_pods(found)
        for difference in differences(wanted, found):
            yield problem(
                f"{pair.name}: {difference}: connections between processes may not come about",
                _apply(release),
            )
    _must_be_read(release, NETWORK)
    yield ok(f"{count} Services and NetworkPolicies are those of the release")


def others(installation: Installation) -> Iterator[Result]:
    """Compare Deployments, settings and what else there is."""
    release, count = known(installation.release), 0
    for pair in release.pairs:
        kind, name = pair.wanted["kind"], pair.wanted["metadata"]["name"]
        is_content = kind == "ConfigMap" and name in CONTENT_OF_USERS
        if kind in (*ROLES, *BINDINGS, *NETWORK) or is_content or pair.found is None:
            continue
        count += 1
        for difference in differences(pair.wanted, known(pair.found)):
            yield warning(
                f"{pair.name}: {difference}", f"{_apply(release)}, unless it is meant to differ"
            )
    yield ok(f"{count} Deployments and other objects have what the release has")


def _apply(release: Release) -> str:
    return f"apply deploy/install/{release.layout}.yaml again, or give the layout with --layout"


def _must_be_read(release: Release, kinds: Sequence[str]) -> None:
    for pair in release.pairs:
        if pair.wanted["kind"] in kinds:
            known(pair.found)


def _rules(role: Object) -> set[str]:
    """Return what a role allows, one verb on one resource each, in words."""
    found = set()
    for rule in role.get("rules") or ():
        for verb in rule["verbs"]:
            found |= {f"{verb} {url}" for url in rule.get("nonResourceURLs") or ()}
            for group in rule.get("apiGroups") or ("",):
                for resource in rule.get("resources") or ():
                    full = f"{resource}.{group}" if group else resource
                    for name in rule.get("resourceNames") or ("",):
                        found.add(f"{verb} {full} {name}".strip())
    return found


def _between_pods(policy: Object) -> Object:
    """Return a NetworkPolicy with the rules for pods of the namespace only."""
    spec = dict(policy["spec"])
    for direction, side in (("ingress", "from"), ("egress", "to")):
        rules = (rule for rule in spec.get(direction) or () if _is_inside(rule.get(side)))
        spec[direction] = list(rules)
    return {**policy, "spec": spec}


def _is_inside(peers: Sequence[Mapping[str, object]] | None) -> bool:
    return not any(field in peer for peer in peers or () for field in OUTSIDE)


CHECKS = (
    Check(
        name="release-objects",
        about="The cluster has every object of the layout's install.yaml.",
        run=objects,
    ),
    Check(
        name="release-rights",
        about="Roles allow what they allow in the release and no more, and are bound to the same.",
        run=rights,
    ),
    Check(
        name="release-network",
        about="Services and NetworkPolicies let Moorage's processes reach each other.",
        run=network,
    ),
    Check(
        name="release-fields",
        about="Deployments and the other objects have the fields of the release. Images, replicas, "
        "resources, and where pods go are yours, and what is added does not count.",
        run=others,
    ),
)
