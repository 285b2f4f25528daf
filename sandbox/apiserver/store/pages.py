"""Lists, whole or in pages. The pages of one list show one resource version."""

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.apiserver.errors import StatusError, bad_request, expired
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.selection import Selection, whole_number
from sandbox.apiserver.store.store import Item


@dataclass(frozen=True, slots=True)
class _Rest:
    items: Sequence[Item]
    revision: int
    path: tuple[str, str | None]


class Pages:
    """Makes lists and keeps the rest of those that were not read to the end."""

    def __init__(self, cluster: Cluster, limit: int) -> None:
        self._cluster = cluster
        self._limit = limit
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        self._tokens = itertools.count(1)

    def list(self, selection: Selection, query: Mapping[str, str]) -> tuple[Sequence[Item], Object]:
        """Return the objects that limit, continue and resourceVersion ask for, and list metadata.

        Raises:
            StatusError: 400, 410 (the token is too old) or 504 (the version is in the future).
        """
        limit, token = whole_number(query, "limit", 0), query.get("continue", "")
        path = (selection.resource.stored_as, selection.namespace)
        if token:
            rest = self._resume(token, path, query)
        else:
            self._check_version(query)
            rest = _Rest(self._cluster.list(selection), self._cluster.store.revision, path)
        metadata: Object = {"resourceVersion": str(rest.revision)}
        if not limit or len(rest.items) <= limit:
            return rest.items, metadata
        left = rest.items[limit:]
        token = f"{rest.revision}-{next(self._tokens)}"
        self._rests[token] = replace(rest, items=left)
        if len(self._rests) > self._limit:
            self._rests.popitem(last=False)
        return rest.items[:limit], metadata | {"continue": token, "remainingItemCount": len(left)}

    def _resume(self, token: str, path: tuple[str, str | None], query: Mapping[str, str]) -> _Rest:
        if whole_number(query, "resourceVersion", 0):
            raise bad_request("specifying resource version is not allowed when using continue")
        rest = self._rests.get(token)
        if rest is None:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        if rest.path != path:
            raise bad_request("continue key is not valid: it belongs to another list")
        return rest

    def _check_version(self, query: Mapping[str, str]) -> None:
        wanted, present = whole_number(query, "resourceVersion", 0), self._cluster.store.revision
        if query.get("resourceVersionMatch") == "Exact" and wanted < present:
            raise expired(f"The resourceVersion for the provided list is too old: {wanted}")
        if wanted > present:
            message = f"Too large resource version: {wanted}, current: {present}"
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            raise StatusError(504, "Timeout", message, details=details)
