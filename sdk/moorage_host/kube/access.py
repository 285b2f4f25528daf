"""Asks the API server whose a bearer token is (TokenReview) and what they may do, by RBAC.

The second question is a SubjectAccessReview. Without an answer nobody may do anything.

Anybody can show any number of tokens that are none. They are asked about by turns of the
addresses that they come from, and what is known is answered from the last answer while that is
renewed, so that a flood keeps nobody out whose token was good before.
"""

import asyncio
import base64
import binascii
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

from moorage_host.http.callers import Review
from moorage_host.kube.client import KubeClient
from moorage_host.kube.response import KubeError
from moorage_host.slots import FairSlots

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_AT_ONCE = 4  # requests
_WAITING_EACH = 16  # requests of one address or user
_WAITING_ASKERS = 64  # addresses and users
_TIMEOUT = 5.0  # seconds
_KEPT = 4096  # answers
_UNKNOWN = 512  # tokens that are nobody's
_RENEWALS = 16  # side by side
_LEEWAY = 60.0  # seconds by which clocks may differ

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]{1,16384}=*")
"""What RFC 6750 allows as a bearer token, and a header can carry."""

_JWT = re.compile(r"eyJ[\w-]+\.([\w-]+)\.[\w-]*")
"""One that is a JWT. Those of some clouds' users are none."""


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


class _Claims(msgspec.Struct, frozen=True):
    exp: float = float("inf")


AnswerT = TypeVar("AnswerT")


class Access:
    """What bearer tokens allow; answers are kept for a short time.

    Args:
        client: The connection; None until there is one. The caller closes it.
        ttl: How long an answer is kept, in seconds, and then again while it is renewed.
        kept: How many answers are kept of each of the two questions.
    """

    def __init__(self, client: KubeClient | None, *, ttl: float, kept: int = _KEPT) -> None:
        self.client = client
        self._users: _CachedAnswers[_User] = _CachedAnswers(ttl, kept)
        self._allowed: _CachedAnswers[bool] = _CachedAnswers(ttl, kept)
        self._unknown: _CachedAnswers[bool] = _CachedAnswers(ttl, min(kept, _UNKNOWN))
        self._slots = FairSlots(
            _AT_ONCE, waiting_each=_WAITING_EACH, waiting_askers=_WAITING_ASKERS
        )

    async def review(self, token: str, path: str, verb: str, peer: str) -> Review:
        """See `TokenReviewer.review`; raises KubeError and TimeoutError."""
        user = await self._user(token, peer)
        if user is None:
            return Review(user="", allowed=False)
        attributes = {"nonResourceAttributes": {"path": path, "verb": verb}}
        return Review(user=user.username, allowed=await self._may(user, attributes))

    async def may_get_pods(self, token: str, namespace: str) -> bool:
        """See `TokenReviewer.may_get_pods`; raises KubeError and TimeoutError."""
        user = await self._user(token, "")
        if user is None:
            return False
        pods = {"version": "v1", "resource": "pods", "verb": "get", "namespace": namespace}
        return await self._may(user, {"resourceAttributes": pods})

    async def _user(self, token: str, peer: str) -> _User | None:
        key = hashlib.sha256(token.encode()).digest()
        if self._unknown.has(key) or not _may_be_good(token):
            return None

        async def ask(asker: str) -> _User | None:
            body = _object("authentication.k8s.io/v1", "TokenReview", {"token": token})
            status = _read(await self._post(TOKENS, body, asker), _TokenReview).status
            return status.user if status.authenticated and status.user.username else None

        user = await self._users.get(key, f"address {peer}", ask)
        if user is None:
            self._unknown.put(key, answer=True)
        return user

    async def _may(self, user: _User, attributes: dict[str, Any]) -> bool:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        body = _object("authorization.k8s.io/v1", "SubjectAccessReview", {**who, **attributes})

        async def ask(asker: str) -> bool:
            return _read(await self._post(ACCESS, body, asker), _AccessReview).status.allowed

        key = hashlib.sha256(body).digest()
        return bool(await self._allowed.get(key, f"user {user.username}", ask))

    async def _post(self, path: str, body: bytes, asker: str) -> bytes:
        if self.client is None:
            raise KubeError("this process is not connected to the API server yet")
        if self._slots.is_full(asker):
            raise KubeError(f"too many bearer tokens of {asker} are being checked; try again")
        async with self._slots.slot(asker):
            answer = await self.client.request("POST", path, body=body, timeout=_TIMEOUT)
        return answer.check().body


def _may_be_good(token: str) -> bool:
    """Return whether the API server has to be asked: not about what is none, or has expired."""
    if not _TOKEN.fullmatch(token):
        return False
    jwt = _JWT.fullmatch(token)
    if jwt is None:
        return "." not in token or not token.startswith("eyJ")
    try:
        claims = base64.urlsafe_b64decode(jwt[1] + "==")
        return msgspec.json.decode(claims, type=_Claims).exp > time.time() - _LEEWAY
    except (binascii.Error, msgspec.DecodeError):
        return False


class _CachedAnswers(Generic[AnswerT]):
    """Answers to the questions asked last, for a time, by their hashes: some are secrets.

    After that time, and for as long again, the last answer holds while it is renewed.
    """

    def __init__(self, ttl: float, limit: int) -> None:
        self._ttl = ttl
        self._limit = limit
        self._answers: OrderedDict[bytes, tuple[float, AnswerT]] = OrderedDict()
        self._renewals: dict[bytes, asyncio.Task[None]] = {}

    def has(self, key: bytes) -> bool:
        kept = self._answers.get(key)
        return kept is not None and time.monotonic() - kept[0] < self._ttl

    async def get(
        self, key: bytes, asker: str, ask: Callable[[str], Awaitable[AnswerT | None]]
    ) -> AnswerT | None:
        kept = self._answers.get(key)
        if kept is not None and (age := time.monotonic() - kept[0]) < 2 * self._ttl:
            self._answers.move_to_end(key)
            if age >= self._ttl and key not in self._renewals and len(self._renewals) < _RENEWALS:
                task = asyncio.create_task(self._renew(key, ask))
                self._renewals[key] = task
                task.add_done_callback(lambda _: self._renewals.pop(key, None))
            return kept[1]
        asked = time.monotonic()
        answer = await ask(asker)
        self.put(key, answer, asked)
        return answer

    async def _renew(self, key: bytes, ask: Callable[[str], Awaitable[AnswerT | None]]) -> None:
        asked = time.monotonic()
        with suppress(KubeError, TimeoutError):  # who asks later gets the error
            self.put(key, await ask("renewals"), asked)

    def put(self, key: bytes, answer: AnswerT | None, asked: float | None = None) -> None:
        """Keep an answer; None, which is no answer, removes what is kept."""
        if answer is None:
            self._answers.pop(key, None)
            return
        self._answers[key] = time.monotonic() if asked is None else asked, answer
        self._answers.move_to_end(key)
        while len(self._answers) > self._limit:
            self._answers.popitem(last=False)


def _object(version: str, kind: str, spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})


def _read(body: bytes, kind: type[AnswerT]) -> AnswerT:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise KubeError(f"the API server's answer is no {kind.__name__[1:]}: {error}") from error
