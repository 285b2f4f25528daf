"""Least rights: what a rendering grants beside what the API server's audit log shows was used."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.planes.embedded import Object

BUILT_IN = {
    "system:kube-scheduler": "what Kubernetes gives its own kube-scheduler, and keeps current",
    "system:volume-scheduler": "the same, for volumes",
    "system:auth-delegator": "TokenReview and SubjectAccessReview, for bearer tokens",
    "extension-apiserver-authentication-reader": "how kube-scheduler knows who calls its port",
}
"""Roles of Kubernetes itself that a rendering may refer to, and why."""

SELDOM = {
    "binder create pods/binding": "where the policy has binds go to Moorage",
    "binder get pods": "after a bind whose answer got lost; test_rights.py loses one",
    "binder patch pods/status": "when a plugin wants a pod tried again; test_rights.py has one",
    "binder create events.events.k8s.io": "when a bind fails; test_rights.py has one fail",
    "binder patch events.events.k8s.io": "when it fails again for the same reason; test_rights.py",
    "gateway list events.events.k8s.io": "when somebody asks about a pod; test_rights.py does",
    "scheduler list events.events.k8s.io": "the same, of a gateway in kube-scheduler's pod",
    "gateway create events.events.k8s.io": "when a profile with pods is lost; test_rights.py",
    "gateway list deviceclasses.resource.k8s.io": "where the policy enables NodeResourcesFit",
    "gateway watch deviceclasses.resource.k8s.io": "where the policy enables NodeResourcesFit",
}
"""Rights that a run as short as this one need not use, and what uses them."""

OF_POLICIES = ("create pods/binding", "deviceclasses.resource.k8s.io")
"""Those of them that are used where a policy needs them."""


class Right(NamedTuple):
    """A verb on a resource for an account; *name* is "" for all objects."""

    account: str
    verb: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def given(objects: Iterable[Object]) -> set[Right]:
    """Return what the Roles of a rendering allow its service accounts."""
    known = list(objects)
    roles = {
        (obj["kind"], obj["metadata"]["name"]): obj.get("rules") or ()
        for obj in known
        if obj["kind"] in ("Role", "ClusterRole")
    }
    rights: set[Right] = set()
    for obj in known:
        if obj["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            role = (obj["roleRef"]["kind"], obj["roleRef"]["name"])
            assert role in roles or role[1] in BUILT_IN, f"{role} is neither ours nor expected"
            for subject in obj.get("subjects") or ():
                account = subject["name"].rpartition(":")[2]
                rights |= set(_rights(account, roles.get(role, ())))
    return rights


def used(log: Path, decision: str = "allow") -> set[Right]:
    """Return what the API server allowed (or forbade) service accounts, with names of objects."""
    return {
        _right(event)
        for event in map(json.loads, log.read_text().splitlines())
        if event["user"]["username"].startswith(("system:serviceaccount:moorage:", "system:kube-s"))
        and "resource" in event.get("objectRef", {})
        and event["annotations"].get("authorization.k8s.io/decision") == decision
    }


def unused(rights: set[Right], log: Path) -> list[Right]:
    """Return which of the rights nothing needed in this run, and no reason is known for."""
    allowed = used(log)
    short = allowed | {right._replace(name="") for right in allowed}
    known = {right for right in SELDOM if not (binds(log) and right.endswith(OF_POLICIES))}
    return sorted(right for right in rights - short if str(right) not in known)


def binds(log: Path) -> bool:
    """Whether the binder has bound pods, so that all that policies can need was needed."""
    return any(str(right).startswith("binder create pods/binding") for right in used(log))


def _rights(account: str, rules: Iterable[Object]) -> Iterator[Right]:
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames") or ("",):
                        yield Right(account, verb, _full(resource, group), name)


def _right(event: Object) -> Right:
    ref = event["objectRef"]
    resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
    account = event["user"]["username"].rpartition(":")[2]
    full = _full(resource, ref.get("apiGroup", ""))
    return Right(account, event["verb"], full, ref.get("name", ""))


def _full(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource
