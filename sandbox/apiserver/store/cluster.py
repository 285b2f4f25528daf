"""The verbs on objects, without HTTP: get, create, update and delete with Kubernetes' rules.

`requests` calls it for clients, tests call it directly. Every method is atomic: nothing awaits.
"""

import uuid
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from sandbox.apiserver import errors
from sandbox.apiserver.kinds.hooks import WriteHooks, check_metadata, generate
from sandbox.apiserver.kinds.pods import SYSTEM_CLASSES
from sandbox.apiserver.kinds.registry import hooks_of
from sandbox.apiserver.kinds.reviews import ACCOUNTS, read_accounts
from sandbox.apiserver.resources.custom import DEFINITIONS, served_resources
from sandbox.apiserver.resources.table import ApiResource, Object, ResourceTable, Target, parse
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.store import Collection, Item, Store, StoreEvent, now, stamp

NAMESPACES = "/namespaces"
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
_UNDELETABLE = ("default", "kube-public", "kube-system")

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "resourceVersion", "namespace", "name",
                 "generateName")  # fmt: skip
_WITH_STATUS = ("kind", "apiVersion", "metadata", "status")
_ATTEMPTS = 8


class EmbeddedCluster:
    """The state of one embedded cluster and the verbs on it.

    Raises:
        ConfigurationError: The file of accounts cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self.store = Store(settings.history)
        self.resources = ResourceTable()
        self.store.listen(DEFINITIONS, self._serve_definition)
        for name in INITIAL:
            self._create_initial("/api/v1/namespaces", name)
        for name, value in SYSTEM_CLASSES.items():
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            self._create_initial(path, name, value=value, globalDefault=False)
        if settings.token_auth_file is not None:
            for account in read_accounts(settings.token_auth_file):
                self.store.put(ACCOUNTS, account)

    def target(self, path: str) -> Target:
        """Read a path below /api or /apis, custom resources included.

        Raises:
            StatusError: 404, nothing is served there.
        """
        return parse(path, self.resources)

    def collection(self, resource: ApiResource) -> Collection:
        """Return where the resource's objects are kept."""
        return self.store.collection(resource.stored_as)

    def get(self, target: Target) -> Item:
        """Return an object.

        Raises:
            StatusError: 404.
        """
        item = self.collection(target.resource).get(target.space, target.name)
        if item is None:
            raise target.not_found()
        return item

    def create(self, target: Target, obj: Object, *, dry_run: bool = False) -> Item:
        """Store a new object, which the call may change, and return it as stored.

        Raises:
            StatusError: 400, 403, 404 (namespace), 409 or 422.
        """
        resource, hooks = target.resource, hooks_of(target.resource)
        metadata = _complete_new(target, obj, self.collection(resource))
        name = metadata.get("name", "")
        if resource.namespaced:
            _require_open(self.store, target.space, resource.plural, name)
        if resource.has_status and not hooks.keeps_status:
            obj.pop("status", None)
        hooks.default(obj)
        hooks.on_create(obj)
        hooks.admit(self.store, obj)
        _check(resource, hooks, obj, hooks.validate(obj))
        if self.collection(resource).get(target.space, name):
            raise errors.already_exists(resource.plural, name, group=resource.group)
        if dry_run or not resource.is_stored:
            return Item(obj, self.store.revision)
        item = self.store.put(resource.stored_as, obj)
        if hooks.most is not None and (
            oldest := self.collection(resource).oldest(target.space, hooks.most)
        ):
            self._remove(resource, oldest.object["metadata"])
        return item

    def update(self, target: Target, obj: Object, *, dry_run: bool = False) -> Item:
        """Replace an object, or with the subresource status only its status; return it as stored.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        resource, hooks = target.resource, hooks_of(target.resource)
        old = self.get(target)
        _check_identity(target, obj["metadata"], old.object["metadata"])
        new = _merge_update(target, obj, old.object)
        hooks.default(new)
        hooks.on_update(new, old.object)
        causes = [*hooks.validate(new), *hooks.validate_update(new, old.object)]
        _check(resource, hooks, new, causes)
        if new == old.object:
            return old
        if new.get("spec") != old.object.get("spec"):
            new["metadata"]["generation"] = new["metadata"].get("generation", 0) + 1
        if dry_run:
            return Item(new, old.revision)
        return self._put_or_finish(resource, new)

    def delete(
        self,
        target: Target,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> Item:
        """Delete an object, or mark it as being deleted while it has finalizers; return it.

        Args:
            target: The object.
            uid: Delete only the object with this UID.
            version: Delete only this version.
            propagation: What becomes of dependents: Orphan leaves them, else they are deleted.
            dry_run: Only check.

        Raises:
            StatusError: 403, 404 or 409.
        """
        item = self.get(target)
        metadata = item.object["metadata"]
        check_preconditions(target, metadata, uid=uid, version=version)
        is_namespace = target.resource.stored_as == NAMESPACES
        if is_namespace and target.name in _UNDELETABLE:
            why = "this namespace may not be deleted"
            raise errors.forbidden("namespaces", target.name, why)
        if dry_run:
            return item
        if is_namespace:
            return self._delete_namespace(target, item)
        if propagation == "Orphan":
            self._release_dependents(metadata["uid"], delete=False)
        if metadata.get("finalizers"):
            return self._mark_deleted(target.resource, item)
        return self._remove(target.resource, metadata)

    def _remove(self, resource: ApiResource, metadata: Object) -> Item:
        space = metadata.get("namespace", "")
        item = self.store.remove(resource.stored_as, space, metadata["name"])
        self._release_dependents(metadata["uid"], delete=True)
        _remove_if_empty(self.store, space)
        return item

    def _release_dependents(self, uid: str, *, delete: bool) -> None:
        """Delete what has no other owner than this one; from the rest, remove the reference."""
        for storage, space, name in self.store.owners.dependents(uid):
            obj = self.store.find(storage, space, name)
            if obj is None:
                continue  # deleted with another dependent
            metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
            references = obj["metadata"]["ownerReferences"]
            others = [each for each in references if each.get("uid", "") != uid]
            if delete and not any(self._exists(each, space) for each in others):
                resource = self.resources.stored_in(storage)
                self.delete(Target(resource=resource, namespace=space, name=name))
            else:
                kept = {"ownerReferences": others} if others else {}
                self.store.put(storage, obj | {"metadata": metadata | kept})

    def _exists(self, owner: Object, namespace: str) -> bool:
        resource = self.resources.of_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
        if resource is None:
            return False
        space = namespace if resource.namespaced else ""
        found = self.store.find(resource.stored_as, space, owner.get("name", ""))
        return found is not None and found["metadata"]["uid"] == owner.get("uid")

    def _mark_deleted(self, resource: ApiResource, item: Item, **changes: Any) -> Item:
        if item.object["metadata"].get("deletionTimestamp"):
            return item
        metadata = item.object["metadata"] | {
            "deletionTimestamp": stamp(now()),
            "deletionGracePeriodSeconds": 0,
        }
        return self.store.put(resource.stored_as, item.object | {"metadata": metadata} | changes)

    def _delete_namespace(self, target: Target, item: Item) -> Item:
        item = self._mark_deleted(target.resource, item, status={"phase": "Terminating"})
        for storage, collection in self.store.collections().items():
            for each in collection.list(target.name):
                name = each.object["metadata"]["name"]
                if collection.get(target.name, name) is None:
                    continue  # deleted with its owner
                resource = self.resources.stored_in(storage)
                self.delete(Target(resource=resource, namespace=target.name, name=name))
        _remove_if_empty(self.store, target.name)
        return item

    def _put_or_finish(self, resource: ApiResource, new: Object) -> Item:
        metadata = new["metadata"]
        item = self.store.put(resource.stored_as, new)
        waits = metadata.get("finalizers") or resource.stored_as == NAMESPACES
        if metadata.get("deletionTimestamp") and not waits:
            self._remove(resource, metadata)
        return item

    def _serve_definition(self, change: StoreEvent) -> None:
        """Serve what a custom resource definition describes, as long as it exists."""
        definition, gone = change.item.object, change.kind == "DELETED"
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        self.resources.replace(group, plural, [] if gone else served_resources(definition))
        storage = f"{group}/{plural}"
        for obj in self.store.objects(storage) if gone else ():
            metadata = obj["metadata"]
            self.store.remove(storage, metadata.get("namespace", ""), metadata["name"])

    def _create_initial(self, path: str, name: str, **fields: Any) -> None:
        target = parse(path)
        obj = {
            "kind": target.resource.kind,
            "apiVersion": target.resource.api_version,
            "metadata": {"name": name},
        }
        self.create(replace(target, name=name), obj | fields)


def _check(
    resource: ApiResource, hooks: WriteHooks, obj: Object, causes: Iterable[errors.Cause]
) -> None:
    found = list(causes)
    if resource.is_stored:
        found = [*check_metadata(obj["metadata"], hooks.name_syntax), *found]
    if found:
        name = obj["metadata"].get("name", "")
        raise errors.invalid(resource.kind, name, found, group=resource.group)


def _require_open(store: Store, namespace: str, resource: str, name: str) -> None:
    """Refuse a new object in a namespace that is missing or going away.

    Raises:
        StatusError: 404 or 403.
    """
    found = store.find(NAMESPACES, "", namespace)
    if found is None:
        raise errors.not_found("namespaces", namespace)
    if found["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise errors.forbidden(resource, name, why)


def _remove_if_empty(store: Store, name: str) -> None:
    """Remove a terminating namespace once nothing is left in it."""
    found = store.find(NAMESPACES, "", name)
    if found is None or not found["metadata"].get("deletionTimestamp"):
        return
    if not any(each.has_any(name) for each in store.collections().values()):
        store.remove(NAMESPACES, "", name)


def _check_identity(target: Target, given: Object, there: Object) -> None:
    """Check that the metadata of an update means the stored object, in its present version.

    Raises:
        StatusError: 400 or 409.
    """
    name = given.get("name", target.name)
    if name != target.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    check_preconditions(target, there, uid=given.get("uid", ""))
    if given.get("resourceVersion") not in (None, "", there["resourceVersion"]):
        group = target.resource.group
        raise errors.conflict(target.resource.plural, target.name, MODIFIED, group=group)


def check_preconditions(target: Target, there: Object, *, uid: str, version: str = "") -> None:
    """Check that the stored object has this UID and version; an empty one is any.

    Raises:
        StatusError: 409.
    """
    wanted = {"UID": (uid, there["uid"]), "ResourceVersion": (version, there["resourceVersion"])}
    for name, (expected, found) in wanted.items():
        if expected and expected != found:
            parts = ("registry", target.resource.plural, target.space, target.name)
            key = "".join(f"/{part}" for part in parts if part)
            why = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {name} in precondition: {expected}, "
                f"{name} in object meta: {found}"
            )
            group = target.resource.group
            raise errors.conflict(target.resource.plural, target.name, why, group=group)


def _complete_new(target: Target, obj: Object, collection: Collection) -> Object:
    """Give a new object the metadata that every object has, and return that metadata.

    Raises:
        StatusError: 400, the object names another namespace than the request.
    """
    metadata: Object = obj["metadata"]
    given = metadata.get("namespace", target.space)
    if given != target.space:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the "
            f"request ({given} and {target.space})"
        )
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _free_name(collection, target.space, metadata["generateName"])
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(key, None)
    if target.namespace is not None:
        metadata["namespace"] = target.namespace
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(now()), "generation": 1}
    return metadata


def _merge_update(target: Target, obj: Object, old: Object) -> Object:
    """Return the new object with what the server owns, or this path may not change, from *old*."""
    kept = {key: old["metadata"][key] for key in _SERVER_OWNED if key in old["metadata"]}
    given = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_OWNED}
    new = obj | {"metadata": given | kept}
    if target.resource.has_status:
        if target.subresource == "status":
            # All but the status stays, not only the spec: some kinds have no spec.
            new = {key: new[key] for key in _WITH_STATUS if key in new}
            other = [key for key in old if key not in ("status", *new)]
        else:
            new.pop("status", None)
            other = ["status"]
        # Copies, because the hooks may fill in defaults.
        new |= {key: deepcopy(old[key]) for key in other if key in old}
    return new


def _free_name(collection: Collection, namespace: str, prefix: str) -> str:
    for _ in range(_ATTEMPTS):
        name = generate(prefix)
        if collection.get(namespace, name) is None:
            break
    return name
