"""Asks the API server whose a bearer token is (TokenReview) and what they may do, by RBAC.

The second question is a SubjectAccessReview. Without an answer nobody may do anything.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import Any, TypeVar

import msgspec

from moorage_host.http.callers import Review
from moorage_host.kube.client import KubeClient
from moorage_host.kube.errors import KubeError

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_KEPT = 256  # answers
_AT_ONCE = 4  # requests
_WAITING = 64  # callers
_TIMEOUT = 5.0  # seconds


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


AnswerT = TypeVar("AnswerT")


class Access:
    """What bearer tokens allow; answers are kept for a short time.

    Args:
        client: The connection; None until there is one. The caller closes it.
        ttl: How long an answer is kept, in seconds.
    """

    def __init__(self, client: KubeClient | None, *, ttl: float) -> None:
        self.client = client
        self._ttl = ttl
        self._kept: OrderedDict[tuple[bytes, str], tuple[float, Review]] = OrderedDict()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def review(self, token: str, path: str) -> Review:
        """Return whose a token is, and whether they may get a path that is no resource.

        Raises:
            KubeError: The API server does not answer, or refuses to.
            TimeoutError: It does not answer in time.
        """
        key = hashlib.sha256(token.encode()).digest(), path
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() - kept[0] < self._ttl:
            return kept[1]
        if self._waiting >= _WAITING:
            raise KubeError("too many bearer tokens are being checked; try again")
        self._waiting += 1
        try:
            async with self._slots:
                review = await self._ask(token, path)
        finally:
            self._waiting -= 1
        self._kept[key] = time.monotonic(), review
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return review

    async def _ask(self, token: str, path: str) -> Review:
        body = _object("authentication.k8s.io/v1", "TokenReview", {"token": token})
        answer = _read(await self._post(TOKENS, body), _TokenReview).status
        user = answer.user
        if not (answer.authenticated and user.username):
            return Review(user="", allowed=False)
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**who, "nonResourceAttributes": {"path": path, "verb": "get"}}
        body = _object("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        access = _read(await self._post(ACCESS, body), _AccessReview)
        return Review(user=user.username, allowed=access.status.allowed)

    async def _post(self, path: str, body: bytes) -> bytes:
        if self.client is None:
            raise KubeError("this process is not connected to the API server yet")
        answer = await self.client.request("POST", path, body=body, timeout=_TIMEOUT)
        return answer.check().body


def _object(version: str, kind: str, spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})


def _read(body: bytes, kind: type[AnswerT]) -> AnswerT:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise KubeError(f"the API server's answer is no {kind.__name__[1:]}: {error}") from error
