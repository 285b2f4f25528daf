"""Reads what a watch request asks for; `watch` then does it."""

from collections.abc import Mapping

from sandbox.apiserver import errors
from sandbox.apiserver.printing.formats import Format
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.query import flag, whole_number
from sandbox.apiserver.store.selection import select
from sandbox.apiserver.watch.watch import Watch, WatchOptions

NOT_OLDER = "NotOlderThan"


def open_watch(
    cluster: Cluster, target: Target, query: Mapping[str, str], form: Format, settings: Settings
) -> Watch:
    """Prepare a watch.

    Raises:
        StatusError: 400 or 422, the parameters make no sense.
    """
    check_list_options(query, watch=True)
    selection = select(target.resource, target.namespace, query)
    return Watch(cluster, selection, form, _options(query, settings))


def check_list_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Check the parameters that depend on each other.

    Raises:
        StatusError: 422.
    """
    match, initial = query.get("resourceVersionMatch", ""), query.get("sendInitialEvents", "")
    if initial and not watch:
        _refuse("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if initial and match != NOT_OLDER:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        _refuse("resourceVersionMatch", why)
    if watch and match and not initial:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        _refuse("resourceVersionMatch", why)
    if not watch and match and not query.get("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        _refuse("resourceVersionMatch", why)


def _options(query: Mapping[str, str], settings: Settings) -> WatchOptions:
    version = whole_number(query, "resourceVersion", 0)
    asked = query.get("sendInitialEvents", "")
    initial = flag(query, "sendInitialEvents") if asked else version == 0
    bookmarks = flag(query, "allowWatchBookmarks")
    return WatchOptions(
        since=None if initial or version == 0 else version,
        initial=initial,
        bookmarks=bookmarks,
        end_of_initial=bool(asked) and initial and bookmarks,
        timeout_seconds=whole_number(query, "timeoutSeconds", 0) or settings.watch_seconds,
        bookmark_seconds=settings.bookmark_seconds,
    )


def _refuse(field: str, why: str) -> None:
    cause = errors.forbidden_value(field, why)
    raise errors.invalid("ListOptions", "", [cause], group="meta.k8s.io")
