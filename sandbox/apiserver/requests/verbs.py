"""Carries out every verb but watch, from the request to the body of its answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from sandbox.apiserver import errors
from sandbox.apiserver.kinds.registry import hooks_of
from sandbox.apiserver.requests.bodies import decode, read_object
from sandbox.apiserver.requests.call import Call
from sandbox.apiserver.requests.patches import patch, replace, shown
from sandbox.apiserver.resources.paths import Target, parse
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store import pages
from sandbox.apiserver.store.binding import bind
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.metadata import Deletion
from sandbox.apiserver.store.selection import select
from sandbox.apiserver.store.store import Item, encode
from sandbox.apiserver.watch import check_list_options

_PODS = parse("/api/v1/pods").resource


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP code and a body."""

    code: int
    body: bytes


class DeleteOptions(msgspec.Struct, rename="camel"):
    """The body of a DELETE, as far as it matters here."""

    preconditions: dict[str, str | None] | None = None
    propagation_policy: Literal["Background", "Foreground", "Orphan"] | None = None
    orphan_dependents: bool | None = None
    dry_run: list[str] | None = None


class Verbs:
    """Carries out calls on one cluster."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._pages = pages.Pages(cluster, settings.pages)
        self._run: dict[str, Callable[[Call], Answer]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def run(self, call: Call) -> Answer:
        """Carry out one call.

        Raises:
            StatusError: It failed.
        """
        return self._run[call.verb](call)

    def _get(self, call: Call) -> Answer:
        return _object(call, self._cluster.get(call.target))

    def _list(self, call: Call) -> Answer:
        check_list_options(call.query, watch=False)
        selection = select(call.target.resource, call.target.namespace, call.query)
        items, metadata = self._pages.list(selection, call.query)
        return Answer(200, call.format.many(call.target.resource, items, metadata))

    def _create(self, call: Call) -> Answer:
        target = call.target
        if target.subresource == "binding" or target.resource.kind == "Binding":
            return self._bind(call)
        if target.subresource == "eviction":
            return self._evict(call)
        obj = read_object(call, decode(call.body, call.media_type))
        return _object(call, self._cluster.create(target, obj, dry_run=call.dry_run), 201)

    def _bind(self, call: Call) -> Answer:
        target = call.target
        binding = read_object(call, decode(call.body, call.media_type), kind="Binding")
        pod = Target(resource=_PODS, namespace=target.namespace, name=target.name)
        bind(self._cluster, pod, binding, dry_run=call.dry_run)
        return Answer(201, encode(errors.success(code=201)))

    def _evict(self, call: Call) -> Answer:
        body = decode(call.body, call.media_type)
        if not isinstance(body, dict) or body.get("kind", "Eviction") != "Eviction":
            raise errors.bad_request("the body of the request must be an Eviction")
        deletion = _deletion(body.get("deleteOptions") or {}, call)
        self._cluster.delete(call.target, deletion)
        return Answer(201, encode(errors.success(code=201)))

    def _update(self, call: Call) -> Answer:
        return _object(call, replace(self._cluster, call, decode(call.body, call.media_type)))

    def _patch(self, call: Call) -> Answer:
        item, created = patch(self._cluster, call)
        return _object(call, item, 201 if created else 200)

    def _delete(self, call: Call) -> Answer:
        item = self._cluster.delete(call.target, _deletion(_delete_options(call), call))
        metadata, resource = item.object["metadata"], call.target.resource
        if hooks_of(resource).returned_when_deleted or metadata.get("deletionTimestamp"):
            return _object(call, item)
        details: Object = {"name": metadata["name"], "kind": resource.plural}
        details |= {"group": resource.group} if resource.group else {}
        return Answer(200, encode(errors.success(details | {"uid": metadata["uid"]})))

    def _delete_collection(self, call: Call) -> Answer:
        resource = call.target.resource
        selection = select(resource, call.target.namespace, call.query)
        items = self._cluster.list(selection)
        for item in items:
            metadata = item.object["metadata"]
            space = metadata.get("namespace")
            target = Target(resource=resource, namespace=space, name=metadata["name"])
            if self._cluster.collection(resource).get(target.space, target.name):
                self._cluster.delete(target, _deletion(_delete_options(call), call))
        version = {"resourceVersion": str(self._cluster.store.revision)}
        return Answer(200, call.format.many(resource, items, version))


def _object(call: Call, item: Item, code: int = 200) -> Answer:
    if call.target.subresource == "scale":
        return Answer(code, encode(shown(call.target, item.object)))
    return Answer(code, call.format.one(call.target.resource, item))


def _delete_options(call: Call) -> Any:
    return decode(call.body, call.media_type) if call.body else {}


def _deletion(value: Any, call: Call) -> Deletion:
    try:
        options = msgspec.convert(value, DeleteOptions)
    except msgspec.ValidationError as error:
        raise errors.bad_request(f"DeleteOptions: {error}") from error
    wanted = options.preconditions or {}
    return Deletion(
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
        propagation=options.propagation_policy
        or call.query.get("propagationPolicy")
        or ("Orphan" if options.orphan_dependents else "Background"),
        dry_run=call.dry_run or options.dry_run == ["All"],
    )
