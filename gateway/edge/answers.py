"""Writes the answers to extender calls: every key, Go's casing, integers, one piece of bytes.

Responses keep Go's connections alive: their length is exact, and what is no answer has no body.
"""

import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from itertools import compress

import msgspec
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter

from gateway.cycle import NodeSet
from gateway.edge.requests import MetaVictims
from moorage.units.printable import printable

NO_OPINION = b"[]"
"""The answer to a prioritize call that failed: nothing is added to any node's score."""

MOST = 1000
"""The largest score: that of the best node at the finest `scoreScale`."""

_ONE_PIECE = 1 << 20  # bytes; copying more takes longer than a second write
_encode = msgspec.json.encode
_BETWEEN = {score: f'","Score":{score}}},{{"Host":"' for score in range(MOST + 1)}
_OPENING = '[{"Host":"'
_NONE: Mapping[str, str] = {}


class _HostPriority(msgspec.Struct):
    Host: str
    Score: int


def filter_answer(
    feasible: NodeSet,
    failed: Mapping[str, str] = _NONE,
    unresolvable: Mapping[str, str] = _NONE,
) -> bytes:
    """Answer a filter call in the fields in which it asked.

    Args:
        feasible: The nodes that are left.
        failed: Reason by node for rejections that evicting pods might cure.
        unresolvable: Reason by node for all other rejections.
    """
    given = feasible.given
    whole = (
        (b'{"metadata":{},"items":[', *_commas([node.raw for node in given]), b"]}")
        if (given is not None)
        else (b"null",)
    )
    return b"".join(
        (
            b'{"Nodes":',
            *whole,
            b',"NodeNames":',
            feasible.encoded if feasible.is_named else b"null",
            b',"FailedNodes":',
            _encode(failed) if failed else b"null",
            b',"FailedAndUnresolvableNodes":',
            _encode(unresolvable) if unresolvable else b"null",
            b',"Error":""}',
        )
    )


def filter_error(message: str) -> bytes:
    """Answer a filter call with an error: kube-scheduler gives the pod up for now."""
    return (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,'
        b'"FailedAndUnresolvableNodes":null,"Error":' + _encode(message) + b"}"
    )


def prioritize_answer(nodes: NodeSet, scores: Sequence[int]) -> bytes:
    """Answer a prioritize call; scores are aligned with the nodes, or empty.

    Nodes at 0 count as 0 when they are missing, but kube-scheduler draws lots only between nodes
    that were named. So when every node is at 0 they are all named: ties stay random.

    Raises:
        ValueError: A score is not a whole number from 0 to MOST, or there are too few or too many.
    """
    if not scores:
        return NO_OPINION
    hosts = nodes.names
    if len(scores) != len(hosts):
        raise ValueError(f"{len(scores)} scores for {len(hosts)} nodes")
    if 0 in scores and any(scores):
        hosts, scores = list(compress(hosts, scores)), list(filter(None, scores))
    try:
        between = list(map(_BETWEEN.__getitem__, scores))
    except KeyError as error:
        raise ValueError(f"a score is {error}, allowed: whole numbers from 0 to {MOST}") from error
    if b"\\" in nodes.encoded:  # names that need escaping
        return _encode(list(map(_HostPriority, hosts, map(int, scores))))
    # Ten thousand pieces and one join: a third of the time of encoding as many objects.
    pieces = [_OPENING] * (2 * len(between) + 1)
    pieces[1::2] = hosts
    pieces[2::2] = between
    pieces[-1] = pieces[-1].removesuffix(',{"Host":"') + "]"
    return "".join(pieces).encode()


def preempt_answer(left: Mapping[str, MetaVictims]) -> bytes:
    """Answer a preempt call with the candidates that are *left*, always in UIDs, and no null."""
    for victims in left.values():
        victims.Pods = victims.Pods or []
    return b'{"NodeNameToMetaVictims":' + _encode(left) + b"}"


def bind_answer(error: str) -> bytes:
    """Answer a bind call; an empty error means that the pod is bound."""
    return b'{"Error":' + _encode(error) + b"}"


def _commas(items: list[msgspec.Raw]) -> list[msgspec.Raw | bytes]:
    # Interleaved, so that the nodes are copied once, by the join of the whole answer.
    separated: list[msgspec.Raw | bytes] = [b","] * (2 * len(items) - 1 if items else 0)
    separated[0::2] = items
    return separated


PROBLEM = "Moorage-Problem"
"""The header with why a prioritize or preempt call failed; the protocol has no field for it."""

_PROBLEM_LENGTH = 500


def in_header(problem: str) -> bytes:
    """Return a text as a header can hold it: one line of ASCII, at most 500 characters."""
    line = " ".join(printable(problem).split())[:_PROBLEM_LENGTH]
    return line.encode("ascii", "backslashreplace")


class JsonResponse(web.StreamResponse):
    """Status 200 and JSON. Its headers are one piece of text: a fifth less work for a call."""

    def __init__(self, body: bytes, problem: str = "") -> None:
        """Answer *body*; the header `PROBLEM` says why it is of no use, if it is of none."""
        super().__init__()
        self._json = body
        self._problem = b"%b: %b\r\n" % (PROBLEM.encode(), in_header(problem)) if problem else b""
        self._is_last = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open afterwards."""
        return not self._is_last

    def force_close(self) -> None:
        """Close the connection afterwards."""
        self._is_last = True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write everything."""
        if request.version < HttpVersion11 or not request.keep_alive:
            self._is_last = True
        head = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\nDate: %b\r\n%b\r\n" % (
            b"Content-Type: application/json\r\n",
            len(self._json),
            _date(int(time.time())),
            self._problem + b"Connection: close\r\n" if self._is_last else self._problem,
        )
        if len(self._json) <= _ONE_PIECE:
            await request.writer.write_eof(head + self._json)
        else:
            await request.writer.write(head)
            await request.writer.write_eof(self._json)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: everything is written."""


def empty_response(status: int, **headers: str) -> web.Response:
    """Return a status without a body: Go reads no body of an error, and drops the connection."""
    return web.Response(status=status, headers={**headers, hdrs.CONTENT_LENGTH: "0"})


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()
