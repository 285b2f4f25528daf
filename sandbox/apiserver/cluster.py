"""The verbs on objects, without HTTP: get, create, update and delete with Kubernetes' rules.

`http` calls it for requests; the sandbox's own parts (binding, the kubelet's stand-in) call it too.
Every method is atomic: nothing in here awaits.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sandbox.apiserver import errors, names, namespaces, priorities
from sandbox.apiserver.incoming import without_nulls
from sandbox.apiserver.paths import Target
from sandbox.apiserver.preconditions import Deletion, check_deletion, check_identity
from sandbox.apiserver.resources import BY_PATH, BY_STORAGE, Resource
from sandbox.apiserver.selection import Selection
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store import Collection, Item, Object, Store
from sandbox.apiserver.times import now, stamp

__all__ = ["Cluster", "Deletion"]

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "resourceVersion", "namespace", "name",
                 "generateName")  # fmt: skip
_ATTEMPTS = 8


class Cluster:
    """The state of one embedded cluster and the verbs on it."""

    def __init__(self, settings: Settings) -> None:
        self.store = Store(settings.history)
        self.on_bound: Callable[[Object], None] | None = None
        """Called with each pod that got a node."""
        self._create_initial_objects()

    def collection(self, resource: Resource) -> Collection:
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

    def list(self, selection: Selection) -> list[Item]:
        """Return the selected objects in the order of namespace and name."""
        items = self.collection(selection.resource).list(selection.namespace)
        return [item for item in items if selection.matches(item.object)]

    def create(
        self,
        target: Target,
        obj: Object,
        *,
        dry_run: bool = False,
        applied: dict[str, Object] | None = None,
    ) -> Item:
        """Store a new object, which the call may change, and return it as stored.

        Raises:
            StatusError: 400, 403, 404 (namespace), 409 or 422.
        """
        resource, rules = target.resource, target.resource.rules
        metadata = self._new_metadata(target, obj)
        if resource.namespaced:
            namespaces.require_open(
                self.store, target.space, resource.plural, metadata.get("name", "")
            )
        rules.default(obj)
        rules.on_create(obj)
        rules.admit(self.store, obj)
        self._validate(resource, obj, rules.validate(obj))
        name = metadata.get("name", "")
        if self.collection(resource).get(target.space, name):
            raise errors.already_exists(resource.plural, name, group=resource.group)
        if dry_run or resource.storage == "none":
            return Item(obj, self.store.revision, applied)
        item = self.store.put(resource.stored_as, obj, applied)
        self._tell_bound(resource, item.object)
        return item

    def update(
        self,
        target: Target,
        obj: Object,
        *,
        dry_run: bool = False,
        applied: dict[str, Object] | None = None,
    ) -> Item:
        """Replace an object, or with the subresource status only its status; return it as stored.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        resource, rules = target.resource, target.resource.rules
        old = self.get(target)
        check_identity(target, obj["metadata"], old.object["metadata"])
        new = self._merged(target, obj, old.object)
        rules.default(new)
        causes = [*rules.validate(new), *rules.validate_update(new, old.object)]
        self._validate(resource, new, iter(causes))
        if new == old.object and (applied is None or applied == old.applied):
            return old
        if new.get("spec") != old.object.get("spec"):
            new["metadata"]["generation"] = new["metadata"].get("generation", 0) + 1
        if dry_run:
            return Item(new, old.revision, applied)
        return self._put_or_finish(resource, new, applied)

    def delete(self, target: Target, deletion: Deletion) -> Item:
        """Delete an object, or mark it as being deleted while it has finalizers; return it.

        Raises:
            StatusError: 403, 404 or 409.
        """
        item = self.get(target)
        metadata = item.object["metadata"]
        check_deletion(target, deletion, metadata)
        is_namespace = target.resource.stored_as == namespaces.STORAGE
        if is_namespace:
            namespaces.require_deletable(target.name)
        if deletion.dry_run:
            return item
        if is_namespace:
            return self._delete_namespace(target, item)
        if metadata.get("finalizers"):
            return self._mark_deleted(target.resource, item)
        return self._remove(target.resource, metadata)

    def _remove(self, resource: Resource, metadata: Object) -> Item:
        space = metadata.get("namespace", "")
        item = self.store.remove(resource.stored_as, space, metadata["name"])
        namespaces.remove_if_done(self.store, space)
        return item

    def _mark_deleted(self, resource: Resource, item: Item, **changes: Any) -> Item:
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
                metadata = each.object["metadata"]
                inner = Target(
                    resource=BY_STORAGE[storage], namespace=target.name, name=metadata["name"]
                )
                self.delete(inner, Deletion())
        namespaces.remove_if_done(self.store, target.name)
        return item

    def _put_or_finish(
        self, resource: Resource, new: Object, applied: dict[str, Object] | None
    ) -> Item:
        metadata = new["metadata"]
        item = self.store.put(resource.stored_as, new, applied)
        waits = metadata.get("finalizers") or resource.stored_as == namespaces.STORAGE
        if metadata.get("deletionTimestamp") and not waits:
            self._remove(resource, metadata)
        return item

    def _new_metadata(self, target: Target, obj: Object) -> Object:
        metadata: Object = obj["metadata"]
        given = metadata.get("namespace", target.space)
        if given != target.space:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                f"request ({given} and {target.space})"
            )
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(target, metadata["generateName"])
        for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(key, None)
        if target.namespace is not None:
            metadata["namespace"] = target.namespace
        metadata |= {
            "uid": str(uuid.uuid4()),
            "creationTimestamp": stamp(now()),
            "generation": 1,
        }
        return metadata

    def _free_name(self, target: Target, prefix: str) -> str:
        for _ in range(_ATTEMPTS):
            name = names.generate(prefix)
            if self.collection(target.resource).get(target.space, name) is None:
                break
        return name

    def _merged(self, target: Target, obj: Object, old: Object) -> Object:
        kept = {key: old["metadata"][key] for key in _SERVER_OWNED if key in old["metadata"]}
        given = {k: v for k, v in obj["metadata"].items() if k not in _SERVER_OWNED}
        new = obj | {"metadata": given | kept}
        if target.resource.rules.status_apart:
            other = "spec" if target.subresource == "status" else "status"
            new.pop(other, None)
            # A copy, because the rules may fill in defaults.
            new |= without_nulls({other: old[other]}) if other in old else {}
        for key in target.resource.rules.kept:
            if key in old["spec"]:
                new.setdefault("spec", {}).setdefault(key, old["spec"][key])
        return new

    def _validate(self, resource: Resource, obj: Object, causes: Iterator[errors.Cause]) -> None:
        metadata = obj["metadata"]
        found = list(causes)
        if resource.storage != "none":
            found = [*names.check_metadata(metadata, resource.rules.name_syntax), *found]
        if found:
            name = metadata.get("name", "")
            raise errors.invalid(resource.kind, name, found, group=resource.group)

    def _tell_bound(self, resource: Resource, obj: Object) -> None:
        if self.on_bound and resource.plural == "pods" and obj["spec"].get("nodeName"):
            self.on_bound(obj)

    def _create_initial_objects(self) -> None:
        spaces = Target(resource=BY_STORAGE[namespaces.STORAGE])
        for name in namespaces.INITIAL:
            self.create(replace(spaces, name=name), _object(spaces.resource, name))
        classes = Target(resource=BY_PATH["scheduling.k8s.io", "v1", "priorityclasses"])
        for name, value in priorities.SYSTEM_CLASSES.items():
            obj = _object(classes.resource, name) | {"value": value, "globalDefault": False}
            self.create(replace(classes, name=name), obj)


def _object(resource: Resource, name: str) -> Object:
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"name": name},
    }
