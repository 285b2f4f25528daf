"""Least rights: what is granted, beside what the API server's audit log shows was used."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.planes.embedded import Object
from tools.planes.real import OUR_NAMESPACE, deployed_objects

BUILT_IN = {
    "system:kube-scheduler": "what Kubernetes gives its own kube-scheduler, and keeps current",
    "system:volume-scheduler": "the same, for volumes",
    "system:auth-delegator": "TokenReview and SubjectAccessReview, for bearer tokens",
    "extension-apiserver-authentication-reader": "how kube-scheduler knows who calls its port",
}
"""Roles of Kubernetes itself that a rendering may refer to, and why."""


class Right(NamedTuple):
    """A verb on a resource; *name* is "" for all objects, subresources are as `pods/binding`."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        full = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join(filter(None, (self.verb, full, self.name)))


def given(account: str, objects: Iterable[Object] | None = None) -> set[Right]:
    """Return what Roles allow a service account; by default those of deploy/, for all objects."""
    known = list(deployed_objects() if objects is None else objects)
    roles = {
        (obj["kind"], obj["metadata"]["name"]): obj.get("rules") or ()
        for obj in known
        if obj["kind"] in ("Role", "ClusterRole")
    }
    rights: set[Right] = set()
    for obj in known:
        subjects = obj.get("subjects") or ()
        if any(each["name"].rpartition(":")[2] == account for each in subjects):
            role = (obj["roleRef"]["kind"], obj["roleRef"]["name"])
            assert role in roles or role[1] in BUILT_IN, f"{role} is neither ours nor expected"
            rights |= set(_rights(roles.get(role, ())))
    return rights if objects is not None else nameless(rights)


def used(log: Path, account: str, decision: str = "allow") -> set[Right]:
    """Return what the API server allowed (or forbade) a service account, whatever the object."""
    return nameless(used_by_name(log, account, decision))


def used_by_name(log: Path, account: str, decision: str = "allow") -> set[Right]:
    """Do the same, with the names of objects; an account may be a user of Kubernetes itself."""
    users = (f"system:serviceaccount:{OUR_NAMESPACE}:{account}", f"system:{account}")
    events = (json.loads(line) for line in log.read_text().splitlines())
    return {
        _right(event["objectRef"], event["verb"])
        for event in events
        if event["user"]["username"] in users
        and "resource" in event.get("objectRef", {})
        and event["annotations"].get("authorization.k8s.io/decision") == decision
    }


def nameless(rights: Iterable[Right]) -> set[Right]:
    """Return rights without the names of objects."""
    return {right._replace(name="") for right in rights}


def _rights(rules: Iterable[Object]) -> Iterator[Right]:
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames") or ("",):
                        yield Right(group, resource, verb, name)


def _right(ref: Object, verb: str) -> Right:
    resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
    return Right(ref.get("apiGroup", ""), resource, verb, ref.get("name", ""))
