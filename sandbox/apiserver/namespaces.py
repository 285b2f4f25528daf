"""Namespaces: which exist from the start, when objects can be created in them, how they go."""

from sandbox.apiserver import shapes
from sandbox.apiserver.errors import forbidden, not_found
from sandbox.apiserver.names import DNS_LABEL
from sandbox.apiserver.rules import Rules
from sandbox.apiserver.store import Object, Store

STORAGE = "/namespaces"
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
_UNDELETABLE = ("default", "kube-public", "kube-system")


def require_open(store: Store, namespace: str, resource: str, name: str) -> None:
    """Refuse a new object in a namespace that is missing or going away.

    Raises:
        StatusError: 404 or 403.
    """
    item = store.collection(STORAGE).get("", namespace)
    if item is None:
        raise not_found("namespaces", namespace)
    if item.object["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource, name, why)


def require_deletable(name: str) -> None:
    """Protect the namespaces that a cluster cannot do without.

    Raises:
        StatusError: 403.
    """
    if name in _UNDELETABLE:
        raise forbidden("namespaces", name, "this namespace may not be deleted")


def remove_if_done(store: Store, name: str) -> None:
    """Remove a terminating namespace once nothing is left in it."""
    item = store.collection(STORAGE).get("", name)
    if item is None or not item.object["metadata"].get("deletionTimestamp"):
        return
    if not any(each.has_any(name) for each in store.collections().values()):
        store.remove(STORAGE, "", name)


def _activate(namespace: Object) -> None:
    name = namespace["metadata"].get("name", "")
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


RULES = Rules(
    on_create=_activate,
    name_syntax=DNS_LABEL,
    shape=shapes.checks(shapes.Namespace),
    status_apart=True,
)
