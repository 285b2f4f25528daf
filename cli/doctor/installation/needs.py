"""Which rights each ServiceAccount of an installation needs, and which it should not have."""

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, NotReadError
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import account_of, services_in, words_of
from cli.doctor.installation.rights import Right
from moorage.models import ObjectKind

READS = (("", "nodes"), ("", "pods"), ("resource.k8s.io", "deviceclasses"))
"""What every gateway follows: API group and plural."""

BINDS = (
    ("create", "", "pods/binding"),
    ("get", "", "pods"),
    ("patch", "", "pods/status"),
    ("create", "events.k8s.io", "events"),
    ("patch", "events.k8s.io", "events"),
)
"""What every binder does: verb, API group and plural."""

REVIEWS = (
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
)
"""What gateway and binder ask about bearer tokens."""

SCHEDULES = (
    ("list", "", "nodes"),
    ("watch", "", "pods"),
    ("create", "", "pods/binding"),
    ("patch", "", "pods/status"),
    ("create", "events.k8s.io", "events"),
    ("list", "", "persistentvolumeclaims"),
    ("update", "", "persistentvolumeclaims"),
)
"""Some of what a kube-scheduler does: of the ClusterRoles kube-scheduler and volume-scheduler."""

FORBIDDEN = (
    ("list", "", "pods"),
    ("get", "", "secrets"),
    ("create", "", "pods/binding"),
)
"""What a process that runs plugin code should not be able to do."""


def needed_rights(read: Installation) -> Sequence[Right]:
    """Return all rights that checks ask about."""
    asked = (needs_of_gateway, needs_of_plugins, needs_of_binder, needs_of_reviews)
    further = (needs_of_leases, needs_of_schedulers, unneeded)
    rights: list[Right] = []
    for needs in (*asked, *further):
        try:
            rights += needs(read)
        except NotReadError:
            continue
    return rights


def needs_of_gateway(read: Installation) -> Iterator[Right]:
    """Yield what the gateway reads of the cluster."""
    for user in _users(read, "gateway"):
        for group, plural in READS:
            yield from _followed(user, group, plural)


def needs_of_plugins(read: Installation) -> Iterator[Right]:
    """Yield what the gateway reads for enabled plugins."""
    yield from readers(read)


def readers(read: Installation) -> Mapping[Right, str]:
    """Return the rights that enabled plugins need, each with such a plugin."""
    found: dict[Right, str] = {}
    plugins = read.policy.plugins
    for user in _users(read, "gateway"):
        for plugin in plugins:
            for kind in plugin.reads:
                for right in _of_kind(user, kind):
                    found.setdefault(right, plugin.name)
    return found


def needs_of_binder(read: Installation) -> Iterator[Right]:
    """Yield what the binder does."""
    for user in _users(read, "binder"):
        for verb, group, plural in BINDS:
            yield Right(user=user, verb=verb, group=group, resource=plural)


def needs_of_reviews(read: Installation) -> Iterator[Right]:
    """Yield what processes ask about bearer tokens."""
    for service in ("gateway", "binder"):
        for user in _users(read, service):
            for group, plural in REVIEWS:
                yield Right(user=user, verb="create", group=group, resource=plural)


def needs_of_leases(read: Installation) -> Iterator[Right]:
    """Yield what gateways and kube-schedulers do with the Leases that elect their leaders."""
    for pod in read.pods("gateway"):
        for service, container in services_in(pod):
            words = words_of(container)
            if service == "gateway" and "--leader-election=lease" in words:
                namespace = _option(words, "--lease-namespace") or "moorage"
                name = _option(words, "--lease-name") or "moorage-gateway"
                yield from _lease(account_of(pod), namespace, name)
    for pod, election in _elections(read):
        namespace = election.get("resourceNamespace") or "kube-system"
        name = election.get("resourceName") or "kube-scheduler"
        yield from _lease(account_of(pod), namespace, name)


def needs_of_schedulers(read: Installation) -> Iterator[Right]:
    """Yield what second kube-schedulers do."""
    for pod in _own_schedulers(read):
        for verb, group, plural in SCHEDULES:
            yield Right(user=account_of(pod), verb=verb, group=group, resource=plural)


def unneeded(read: Installation) -> Iterator[Right]:
    """Yield what filter and scorer should not be able to do."""
    for service in ("filter", "scorer"):
        for user in _users(read, service):
            for verb, group, plural in FORBIDDEN:
                yield Right(user=user, verb=verb, group=group, resource=plural)


def _users(read: Installation, service: str) -> Sequence[str]:
    return list(dict.fromkeys(account_of(pod) for pod in read.pods(service)))


def _followed(user: str, group: str, plural: str, namespace: str = "") -> Iterator[Right]:
    for verb in ("list", "watch"):
        yield Right(user=user, verb=verb, group=group, resource=plural, namespace=namespace)


def _of_kind(user: str, kind: ObjectKind) -> Iterator[Right]:
    group = kind.api_version.rpartition("/")[0]
    field, _, name = kind.field_selector.partition("=")
    one = name if field == "metadata.name" else ""
    for right in _followed(user, group, kind.plural, kind.namespace):
        yield Right(
            user=right.user,
            verb=right.verb,
            group=right.group,
            resource=right.resource,
            namespace=right.namespace,
            name=one,
        )


def _lease(user: str, namespace: str, name: str) -> Iterator[Right]:
    group, plural = "coordination.k8s.io", "leases"
    yield Right(user=user, verb="create", group=group, resource=plural, namespace=namespace)
    for verb in ("get", "update"):
        yield Right(
            user=user, verb=verb, group=group, resource=plural, namespace=namespace, name=name
        )


def _own_schedulers(read: Installation) -> Iterator[Object]:
    """Yield one pod of each kube-scheduler that runs with a ServiceAccount."""
    for scheduler in read.schedulers:
        for pod in scheduler.pods[:1]:
            if pod["spec"].get("serviceAccountName"):
                yield pod


def _elections(read: Installation) -> Iterator[tuple[Object, Mapping[str, str]]]:
    for scheduler in read.schedulers:
        if isinstance(scheduler.configuration, Missing):
            continue
        election = scheduler.configuration.leader_election
        for pod in scheduler.pods[:1]:
            if election.get("leaderElect", True) and pod["spec"].get("serviceAccountName"):
                yield pod, election


def _option(words: Sequence[str], name: str) -> str:
    found = (word.partition("=")[2] for word in words if word.startswith(f"{name}="))
    return next(found, "")
