"""What reviews are answered with: whose a bearer token is, and what a user may do by RBAC.

Only reviews ask: the server itself lets everybody do everything.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.errors import ConfigurationError
from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.kinds.hooks import WriteHooks
from sandbox.apiserver.resources.table import Object
from sandbox.apiserver.store.store import Store

ACCOUNTS = "sandbox/accounts"
"""The collection of accounts; it is not served."""

AUTHENTICATED = "system:authenticated"
"""The group of everybody with an account."""


def read_accounts(path: Path) -> list[Object]:
    """Read a file in the form of kube-apiserver's --token-auth-file: token,user,uid,"group,group".

    Raises:
        ConfigurationError: It cannot be read, or a line lacks one of the first three fields.
    """
    try:
        with path.open(newline="") as file:
            rows = csv.reader(file, strict=True)
            return [_account(row, f"{path}, line {rows.line_num}") for row in rows if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"cannot read the accounts in {path}: {error}") from error


def _account(row: list[str], place: str) -> Object:
    fields = [field.strip() for field in row]
    if len(fields) not in (3, 4) or not all(fields[:3]):
        raise ConfigurationError(f'{place}: write token,user,uid and perhaps ,"group,group"')
    token, user, uid = fields[:3]
    groups = [name.strip() for name in "".join(fields[3:]).split(",") if name.strip()]
    known = {"username": user, "uid": uid, "groups": [*groups, AUTHENTICATED]}
    return {"metadata": {"name": place}, "token": token, "user": known}


def _authenticate(store: Store, review: Object) -> None:
    token = review["spec"]["token"]
    found = next((each for each in store.objects(ACCOUNTS) if each["token"] == token), None)
    if found is None:
        review["status"] = {"authenticated": False, "user": {}, "error": "the token is unknown"}
    else:
        review["status"] = {"authenticated": True, "user": found["user"]}


def _default_token(review: Object) -> None:
    review.setdefault("spec", {}).setdefault("token", "")


def _validate_token(review: Object) -> Iterator[Cause]:
    if not review["spec"]["token"]:
        yield required("spec.token")


TOKEN_REVIEWS = WriteHooks(default=_default_token, admit=_authenticate, validate=_validate_token)


_GROUP = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"
_RESOURCE, _URL = "resourceAttributes", "nonResourceAttributes"

Attributes = Mapping[str, Any]


def _review(store: Store, review: Object) -> None:
    spec = review["spec"]
    if not _asks_one_question(spec):
        return  # `_validate` refuses it
    namespace = (spec.get(_RESOURCE) or {}).get("namespace", "")
    granting = (name for name, rule in _rules(store, spec, namespace) if _allows(rule, spec))
    name = _MASTERS if _MASTERS in (spec.get("groups") or ()) else next(granting, "")
    review["status"] = {"allowed": bool(name), "reason": f"RBAC: allowed by {name}" if name else ""}


def _rules(store: Store, spec: Attributes, namespace: str) -> Iterator[tuple[str, Attributes]]:
    """Yield the rules that count for a user, each with the name of its binding."""
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in store.objects(f"{_GROUP}/{kind}"):
            space = binding["metadata"].get("namespace", "")
            if space in ("", namespace) and any(
                _names(each, spec) for each in binding.get("subjects") or ()
            ):
                for rule in _role(store, binding["roleRef"], space).get("rules") or ():
                    yield binding["metadata"]["name"], rule


def _role(store: Store, reference: Attributes, namespace: str) -> Object:
    is_cluster_role = reference.get("kind") == "ClusterRole"
    kind, space = ("clusterroles", "") if is_cluster_role else ("roles", namespace)
    return store.find(f"{_GROUP}/{kind}", space, reference.get("name", "")) or {}


def _names(entry: Attributes, spec: Attributes) -> bool:
    kind, name = entry.get("kind"), entry.get("name")
    if kind == "Group":
        return name in (spec.get("groups") or ())
    if kind == "ServiceAccount":
        name = f"system:serviceaccount:{entry.get('namespace', '')}:{name}"
    return name == spec.get("user")


def _allows(rule: Attributes, spec: Attributes) -> bool:
    if (url := spec.get(_URL)) is not None:
        path = url.get("path", "")
        patterns = rule.get("nonResourceURLs") or ()
        return _has(rule.get("verbs"), url.get("verb")) and any(
            path == each or (each.endswith("*") and path.startswith(each[:-1])) for each in patterns
        )
    asked = spec[_RESOURCE]
    resource, subresource = asked.get("resource", ""), asked.get("subresource", "")
    wanted = [f"{resource}/{subresource}", f"*/{subresource}"] if subresource else [resource]
    names = rule.get("resourceNames")
    return (
        _has(rule.get("verbs"), asked.get("verb"))
        and _has(rule.get("apiGroups"), asked.get("group", ""))
        and any(_has(rule.get("resources"), each) for each in wanted)
        and (not names or asked.get("name") in names)
    )


def _has(listed: Sequence[str] | None, wanted: str | None) -> bool:
    return listed is not None and ("*" in listed or wanted in listed)


def _validate(review: Object) -> Iterator[Cause]:
    spec = review["spec"]
    if not _asks_one_question(spec):
        why = f"exactly one of {_URL} or {_RESOURCE} must be specified"
        yield invalid_value("spec", "", why)
    if not (spec.get("user") or spec.get("groups")):
        yield invalid_value("spec.user", "", "at least one of user or group must be specified")


def _asks_one_question(spec: Attributes) -> bool:
    return (spec.get(_RESOURCE) is None) != (spec.get(_URL) is None)


def _default(review: Object) -> None:
    review.setdefault("spec", {})


ACCESS_REVIEWS = WriteHooks(default=_default, admit=_review, validate=_validate)
