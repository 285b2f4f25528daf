"""Asks the API server whose a bearer token is (TokenReview) and what they may do, by RBAC.

The second question is a SubjectAccessReview. Without an answer nobody may do anything.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec

from moorage_host.http.callers import Review
from moorage_host.kube.client import KubeClient
from moorage_host.kube.response import KubeError
from moorage_host.slots import Slots

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

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
        kept: How many answers are kept of each of the two questions.
    """

    def __init__(self, client: KubeClient | None, *, ttl: float, kept: int = 4096) -> None:
        self.client = client
        self._users: _Kept[_User | None] = _Kept(ttl, kept)
        self._allowed: _Kept[bool] = _Kept(ttl, kept)
        self._slots = Slots(_AT_ONCE, _WAITING)

    async def review(self, token: str, path: str, verb: str) -> Review:
        """Return whose a token is, and whether they may call a path that is no resource.

        Raises:
            KubeError: The API server does not answer, or refuses to.
            TimeoutError: It does not answer in time.
        """
        user = await self._user(token)
        if user is None:
            return Review(user="", allowed=False)
        attributes = {"nonResourceAttributes": {"path": path, "verb": verb}}
        return Review(user=user.username, allowed=await self._may(user, attributes))

    async def may_get_pods(self, token: str, namespace: str) -> bool:
        """Return whether a token allows to get pods of a namespace, or of all of them for "".

        Raises:
            KubeError: The API server does not answer, or refuses to.
            TimeoutError: It does not answer in time.
        """
        user = await self._user(token)
        if user is None:
            return False
        pods = {"version": "v1", "resource": "pods", "verb": "get", "namespace": namespace}
        return await self._may(user, {"resourceAttributes": pods})

    async def _user(self, token: str) -> _User | None:
        async def ask() -> _User | None:
            body = _object("authentication.k8s.io/v1", "TokenReview", {"token": token})
            status = _read(await self._post(TOKENS, body), _TokenReview).status
            return status.user if status.authenticated and status.user.username else None

        return await self._users.get(token.encode(), ask)

    async def _may(self, user: _User, attributes: dict[str, Any]) -> bool:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        body = _object("authorization.k8s.io/v1", "SubjectAccessReview", {**who, **attributes})

        async def ask() -> bool:
            return _read(await self._post(ACCESS, body), _AccessReview).status.allowed

        return await self._allowed.get(body, ask)

    async def _post(self, path: str, body: bytes) -> bytes:
        if self.client is None:
            raise KubeError("this process is not connected to the API server yet")
        if self._slots.is_full:
            raise KubeError("too many bearer tokens are being checked; try again")
        async with self._slots.slot():
            answer = await self.client.request("POST", path, body=body, timeout=_TIMEOUT)
        return answer.check().body


class _Kept(Generic[AnswerT]):
    """Answers to the questions asked last, for a time. Secrets are kept as hashes only."""

    def __init__(self, ttl: float, limit: int) -> None:
        self._ttl = ttl
        self._limit = limit
        self._answers: OrderedDict[bytes, tuple[float, AnswerT]] = OrderedDict()

    async def get(self, question: bytes, ask: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        key = hashlib.sha256(question).digest()
        kept = self._answers.get(key)
        if kept is not None and time.monotonic() - kept[0] < self._ttl:
            return kept[1]
        asked = time.monotonic()
        answer = await ask()
        self._answers[key] = asked, answer
        self._answers.move_to_end(key)
        while len(self._answers) > self._limit:
            self._answers.popitem(last=False)
        return answer


def _object(version: str, kind: str, spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})


def _read(body: bytes, kind: type[AnswerT]) -> AnswerT:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise KubeError(f"the API server's answer is no {kind.__name__[1:]}: {error}") from error
