"""What a target is; and mutations that keep the form of JSON and of series of protobuf messages."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Any, ClassVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5, 1e308, -0.0),
    *("", "a", "*", "\x00", "é", "\ud800", "a" * 300, "Infinity"),
    *("500m", "-1", "1e999999999", "9Ei"),
    *([], {}, [None], [[]], {"": None}, ["a", "a"], {"a": {"a": {"a": {}}}}),
)
"""Values that go wherever one was."""

_DEEP = 2000


def mutated_json(data: bytes, random: Random, odd: Sequence[Any] = ODD) -> bytes | None:
    """Change a few places of a document; None if it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for _ in range(random.choice((1, 1, 2, 4))):
        value = _changed(value, random, odd)
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=random.random() < 0.5)
    except (ValueError, RecursionError):
        return None
    if random.random() < 0.02:
        text = text.replace("null", "[" * _DEEP + "]" * _DEEP, 1)
    return text.encode(errors="surrogatepass" if random.random() < 0.5 else "replace")


def _changed(value: Any, random: Random, odd: Sequence[Any]) -> Any:
    """Return a value with one place changed, at any depth."""
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        if random.random() < 0.75:
            return {**value, key: _changed(value[key], random, odd)}
        return _changed_keys(value, key, random, odd)
    if isinstance(value, list) and value:
        at = random.randrange(len(value))
        if random.random() < 0.75:
            return [*value[:at], _changed(value[at], random, odd), *value[at + 1 :]]
        return value[:at] + value[at + 1 :] if random.random() < 0.5 else [*value, value[at]]
    if isinstance(value, str) and value and random.random() < 0.4:
        at = random.randrange(len(value))
        return value[:at] + random.choice(("", "\x00", "é", "-", "9", ",", '"')) + value[at + 1 :]
    return random.choice(odd)


def _changed_keys(value: dict[str, Any], key: str, random: Random, odd: Sequence[Any]) -> Any:
    others = {k: v for k, v in value.items() if k != key}
    match random.randrange(4):
        case 0:
            return others
        case 1:
            return {**others, key.swapcase(): value[key]}
        case 2:
            return {**value, random.choice((*value, "x", "")): random.choice(odd)}
        case _:
            return random.choice(odd)


def packed(messages: Sequence[bytes]) -> bytes:
    """Write a series of messages, each after its length in two bytes."""
    return b"".join(len(each).to_bytes(2, "big") + each for each in messages)


def unpacked(data: bytes) -> list[bytes]:
    """Read a series of messages; what follows the last whole one is one, too."""
    messages = []
    while data:
        size = int.from_bytes(data[:2], "big")
        messages.append(data[2 : 2 + size])
        data = data[2 + size :]
    return messages


def mutated_messages(data: bytes, random: Random, kind: Callable[[], Message]) -> bytes | None:
    """Change one message of a series, or their order; None if the one chosen cannot be read."""
    messages = unpacked(data)
    if not messages:
        return None
    at = random.randrange(len(messages))
    choice = random.random()
    if choice < 0.1:
        return packed([*messages[:at], *messages[at + 1 :]])
    if choice < 0.2:
        return packed([*messages, messages[at]])
    message = kind()
    try:
        message.ParseFromString(messages[at])
    except DecodeError:
        return None
    for _ in range(random.choice((1, 1, 3))):
        _change_field(message, random)
    return packed([*messages[:at], message.SerializeToString(), *messages[at + 1 :]])


def _change_field(message: Message, random: Random) -> None:
    there: list[Any] = [field for field, _ in message.ListFields()]
    fields = there if there and random.random() < 0.7 else list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = random.choice(fields)
    if field.is_repeated:
        _change_repeated(message, field, random)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if random.random() < 0.1:
            message.ClearField(field.name)
        else:
            inner = getattr(message, field.name)
            inner.SetInParent()
            _change_field(inner, random)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), random))


def _change_repeated(message: Message, field: FieldDescriptor, random: Random) -> None:
    values = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key = random.choice(list(values) or ["k"])
        if field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_MESSAGE:
            values[key].SetInParent()
        else:
            value = field.message_type.fields_by_name["value"]
            values[key] = _scalar(value, values[key], random)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        chosen = random.choice(values) if len(values) and random.random() < 0.7 else values.add()
        if len(values) > 1 and random.random() < 0.2:
            del values[random.randrange(len(values))]
        else:
            _change_field(chosen, random)
    elif len(values) and random.random() < 0.3:
        del values[random.randrange(len(values))]
    else:
        values.append(_scalar(field, field.default_value or 0, random))


_TEXTS = ("", "a", "n1", "n2", "u1", "moorage", "\x00é")
_WIDTH = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
}


def _scalar(field: FieldDescriptor, old: Any, random: Random) -> Any:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return random.choice((*_TEXTS, "a" * 300, str(old)))
        case FieldDescriptor.TYPE_BYTES:
            changed = mutated_json(bytes(old), random) if isinstance(old, bytes) else None
            return changed if changed is not None else random.randbytes(random.randrange(9))
        case FieldDescriptor.TYPE_BOOL:
            return random.random() < 0.5
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return random.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))
        case FieldDescriptor.TYPE_ENUM:
            return random.randrange(6)
    least, most = _WIDTH.get(field.type, (0, 1))
    return random.choice((0, 1, 2, 3, least, most, 2**28 if most > 2**28 else most))


LOG_BYTES = 1024
"""What one bad call may write to the log."""


class WrongError(Exception):
    """Something that must always hold does not.

    Args:
        what: One line, the same for all cases of this kind.
        detail: What helps to mend it.
    """

    def __init__(self, what: str, detail: object = "") -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what
        self.detail = str(detail)[:2000]


class Target(ABC):
    """Something that reads what others send.

    Attributes:
        name: What it is called on the command line, and its folder of the corpus.
        share: Its part of all cases, compared to the other targets.
        seconds: How long a case takes, roughly: slow targets start first.
        tokens: Words that mutations put in.
        longest: Bytes of a case.
        log_bytes: What a case may write to the log.
    """

    name: ClassVar[str]
    share: ClassVar[float]
    seconds: ClassVar[float] = 1e-4
    tokens: ClassVar[tuple[str, ...]] = ()
    longest: ClassVar[int] = 256
    log_bytes: ClassVar[int] = LOG_BYTES

    async def open(self, stack: AsyncExitStack) -> None:
        """Start what the cases need; by default nothing."""
        del stack

    @abstractmethod
    async def case(self, data: bytes) -> None:
        """Run one case; raises WrongError, or whatever else is not expected."""

    @property
    def has_structure(self) -> bool:
        """Whether it has mutations of its own."""
        return type(self).mutated is not Target.mutated

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        """Return a case that differs in its structure; None leaves it to mutations of bytes."""
        del data, random
        return None


def require(condition: Any, what: str, detail: object = "") -> None:
    """Raise WrongError unless something holds."""
    if not condition:
        raise WrongError(what, detail)
