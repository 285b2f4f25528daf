"""The life of a namespace: when objects can be created in it, and how it goes."""

from sandbox.apiserver.errors import forbidden, not_found
from sandbox.apiserver.store.store import Store

NAMESPACES = "/namespaces"
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
_UNDELETABLE = ("default", "kube-public", "kube-system")


def require_open(store: Store, namespace: str, resource: str, name: str) -> None:
    """Refuse a new object in a namespace that is missing or going away.

    Raises:
        StatusError: 404 or 403.
    """
    found = store.find(NAMESPACES, "", namespace)
    if found is None:
        raise not_found("namespaces", namespace)
    if found["metadata"].get("deletionTimestamp"):
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


def remove_if_empty(store: Store, name: str) -> None:
    """Remove a terminating namespace once nothing is left in it."""
    found = store.find(NAMESPACES, "", name)
    if found is None or not found["metadata"].get("deletionTimestamp"):
        return
    if not any(each.has_any(name) for each in store.collections().values()):
        store.remove(NAMESPACES, "", name)
