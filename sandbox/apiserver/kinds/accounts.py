"""Whose a bearer token is, as TokenReviews ask; the accounts are kept apart from the objects."""

import csv
from collections.abc import Iterator
from pathlib import Path

from moorage.errors import ConfigurationError
from sandbox.apiserver.errors import Cause, required
from sandbox.apiserver.kinds.hooks import Hooks, Reader
from sandbox.apiserver.resources.resource import Object

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


def _authenticate(store: Reader, review: Object) -> None:
    token = review["spec"]["token"]
    found = next((each for each in store.objects(ACCOUNTS) if each["token"] == token), None)
    if found is None:
        review["status"] = {"authenticated": False, "user": {}, "error": "the token is unknown"}
    else:
        review["status"] = {"authenticated": True, "user": found["user"]}


def _default(review: Object) -> None:
    review.setdefault("spec", {}).setdefault("token", "")


def _validate(review: Object) -> Iterator[Cause]:
    if not review["spec"]["token"]:
        yield required("spec.token")


TOKEN_REVIEWS = Hooks(default=_default, admit=_authenticate, validate=_validate)
