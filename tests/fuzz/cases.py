"""What nobody should send: documents, messages and texts with something wrong; and their limits.

Whatever a case is: no exception that is not expected, an answer in time, little in the log, and no
memory that keeps growing. `make fuzz` tries a hundred times as many cases as `make test`.
"""

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any, TypeVar

import structlog
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

SECONDS = 10.0
"""After which a case counts as one that hangs. Long, as machines that run tests are slow."""

LOGGED = 2048
"""Characters that one bad call may write to the log."""

ROUNDS = 10
"""How often the same cases come; the first two rounds fill what is cached."""

KEPT = 4
"""Blocks of memory, which small objects take one each, that a case may leave on average."""

MOST = 300
"""Cases that come again and again."""

CaseT = TypeVar("CaseT")


@asynccontextmanager
async def limits() -> AsyncIterator[None]:
    """Fail if what is done with a case in the block takes too long, or logs too much."""
    with structlog.testing.capture_logs() as entries:
        async with asyncio.timeout(SECONDS):
            yield
    assert sum(len(str(entry)) for entry in entries) <= LOGGED, entries


async def check_growth(
    cases: st.SearchStrategy[CaseT], run: Callable[[CaseT], Awaitable[None]]
) -> None:
    """Fail if ever more objects are kept while the same cases are run again, without Hypothesis."""
    kept, drawn = list[int](), list[CaseT]()

    @settings(max_examples=min(MOST, settings().max_examples), phases=[Phase.generate])
    @given(case=cases)
    def draw(case: CaseT) -> None:
        drawn.append(case)

    draw()
    for _ in range(ROUNDS):
        for each in drawn:
            with structlog.testing.capture_logs():
                await run(each)
        gc.collect()
        kept.append(sys.getallocatedblocks())
    # What is kept once is in one round, and unfinished work in some; a leak is in each.
    leak = KEPT * len(drawn)
    in_each = median(after - before for before, after in pairwise(kept[2:]))
    in_all = min(kept[-3:]) - min(kept[2:5])
    assert in_each < leak or in_all < leak * (ROUNDS - 5), kept


# ---- documents

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5, 1e308, -0.0),
    *("", "a", "*", "\x00", "é", "\ud800", "a" * 300, "Infinity"),
    *("500m", "-1", "1e999999999", "9Ei"),
    *([], {}, [None], [[]], {"": None}, ["a", "a"], {"a": {"a": {"a": {}}}}),
)
"""Values that go wherever one was."""

_DEEP = 2000


def mutated(document: Any, random: Random, odd: Sequence[Any] = ODD) -> bytes:
    """Write a document with a few places changed, and now and then no JSON any more."""
    for _ in range(random.choice((1, 1, 2, 4))):
        document = _changed(document, random, odd)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=random.random() < 0.5)
    if random.random() < 0.05:
        text = text.replace("null", "[" * _DEEP + "]" * _DEEP, 1)
    body = text.encode(errors="surrogatepass" if random.random() < 0.5 else "replace")
    if random.random() < 0.15:
        at = random.randrange(len(body))
        body = body[:at] + random.choice((b"", b"\xff", b"\x00", b'"', b"}")) + body[at + 1 :]
    return body


def _changed(value: Any, random: Random, odd: Sequence[Any]) -> Any:
    """Return a value with one place changed, at any depth."""
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        others = {k: v for k, v in value.items() if k != key}
        changes = (
            others,
            {**others, key.swapcase(): value[key]},
            {**value, random.choice((*value, "x", "")): random.choice(odd)},
            random.choice(odd),
        )
        if random.random() < 0.75:
            return {**value, key: _changed(value[key], random, odd)}
        return random.choice(changes)
    if isinstance(value, list) and value:
        at = random.randrange(len(value))
        if random.random() < 0.75:
            return [*value[:at], _changed(value[at], random, odd), *value[at + 1 :]]
        return value[:at] + value[at + 1 :] if random.random() < 0.5 else [*value, value[at]]
    if isinstance(value, str) and value and random.random() < 0.4:
        at = random.randrange(len(value))
        return value[:at] + random.choice(("", "\x00", "é", "-", "9", ",", '"')) + value[at + 1 :]
    return random.choice(odd)


@st.composite
def bodies(draw: st.DrawFn, documents: Sequence[Any], odd: Sequence[Any] = ODD) -> bytes:
    """Draw one of some documents, mutated."""
    document = draw(st.sampled_from(documents))
    return mutated(document, draw(st.randoms(use_true_random=False)), odd)


def of_words(*words: str, most: int = 8) -> st.SearchStrategy[str]:
    """Draw texts of a few words and whatever else, such as halves of characters."""
    more = st.text(st.characters(), max_size=3)
    return st.lists(st.sampled_from(words) | more, max_size=most).map("".join)


# ---- messages

_NODE = b'{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4","pods":"9"}}}'
_POD = b'{"metadata":{"name":"p","namespace":"default","uid":"u1"},"spec":{"nodeName":"n1"}}'
_POLICY = b'{"profiles":[{"name":"moorage","plugins":[{"name":"NodeGroup"}]}]}'
_DEPTH = 5

_NUMBERS = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
}


def messages(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Draw messages of a kind, with any of their fields."""
    return _fields(kind.DESCRIPTOR, _DEPTH).map(lambda fields: kind(**fields))


def _fields(of: Any, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    known = [each for each in of.fields if depth or each.message_type is None]
    return st.fixed_dictionaries({}, optional={each.name: _values(each, depth) for each in known})


def _values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        key, value = kind.fields_by_name["key"], kind.fields_by_name["value"]
        return st.dictionaries(_values(key, 0), _values(value, depth - 1), max_size=2)
    one = _scalars(field) if kind is None else _fields(kind, depth - 1)
    return st.lists(one, max_size=3) if field.is_repeated else one


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return st.sampled_from(("", "a", "n1", "n2", "u1", "moorage", "\x00é", "a" * 300))
        case FieldDescriptor.TYPE_BYTES:
            whole = st.sampled_from((_NODE, _POD, _POLICY, b"\x01", b"\xff\xff"))
            broken = bodies([json.loads(each) for each in (_NODE, _POD, _POLICY)])
            return whole | whole | broken | st.binary(max_size=9)
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return st.sampled_from((0.0, -1.0, 1e308, float("inf"), float("nan")))
        case FieldDescriptor.TYPE_ENUM:
            return st.integers(0, 6)
    least, most = _NUMBERS[field.type]
    return st.sampled_from((0, 1, 2, 3, least, most, 2**28))
