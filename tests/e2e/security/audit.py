"""Which rights our processes were given, and which they used."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.planes.embedded import Object
from tools.planes.real import OUR_NAMESPACE, deployed_objects


class Right(NamedTuple):
    """A verb on a resource; subresources are written as `pods/binding`."""

    group: str
    resource: str
    verb: str


def given(account: str) -> set[Right]:
    """Return what the Roles of deploy/ allow a service account; others' Roles are left out."""
    objects = list(deployed_objects())
    roles = {
        (obj["kind"], obj["metadata"]["name"]): obj.get("rules") or ()
        for obj in objects
        if obj["kind"] in ("Role", "ClusterRole")
    }
    rights: set[Right] = set()
    for obj in objects:
        if any(s.get("name") == account for s in obj.get("subjects") or ()):
            ref = obj["roleRef"]
            for rule in roles.get((ref["kind"], ref["name"]), ()):
                rights |= set(_rights(rule))
    return rights


def used(log: Path, account: str, decision: str = "allow") -> set[Right]:
    """Return what the API server allowed (or forbade) a service account, from its audit log."""
    user = f"system:serviceaccount:{OUR_NAMESPACE}:{account}"
    events = (json.loads(line) for line in log.read_text().splitlines())
    return {
        _right(event["objectRef"])._replace(verb=event["verb"])
        for event in events
        if event["user"]["username"] == user
        and "resource" in event.get("objectRef", {})
        and event["annotations"].get("authorization.k8s.io/decision") == decision
    }


def _rights(rule: Object) -> Iterator[Right]:
    for group in rule.get("apiGroups", ()):
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield Right(group, resource, verb)


def _right(ref: Object) -> Right:
    parts = filter(None, (ref["resource"], ref.get("subresource")))
    return Right(ref.get("apiGroup", ""), "/".join(parts), "")
