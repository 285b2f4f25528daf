"""Reads extenders' answers by the rules of Go's encoding/json and kube-scheduler's checks.

Keys match in any case, unknown ones are ignored, null is the zero value, text after the first value
does not matter; a wrong type fails the whole answer.
"""

import json
from typing import Any, NamedTuple, NoReturn, TypeVar

_INT64 = range(-(2**63), 2**63)
_IN_GO = {str: "string", int: "int64", list: "[]", dict: "map"}
T = TypeVar("T")


class ExtenderError(Exception):
    """An extender did not do what it was asked; the message is what users read."""


class AnswerError(ExtenderError):
    """Go would refuse this answer; the message is close to Go's own."""


class FilterAnswer(NamedTuple):
    """An ExtenderFilterResult; None where the field is null or absent."""

    names: list[str] | None
    nodes: list[dict[str, Any]] | None
    failed: dict[str, str]
    unresolvable: dict[str, str]
    error: str


def decode_answer(text: bytes) -> Any:
    """Read the first JSON value of an answer.

    Raises:
        AnswerError: There is none, or it is not JSON as Go knows it (which has no NaN).
    """
    source = text.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not source:
        raise AnswerError("EOF")
    try:
        return _DECODER.raw_decode(source)[0]
    except json.JSONDecodeError as error:
        if error.pos >= len(source):
            raise AnswerError("unexpected EOF") from error
        raise AnswerError(_invalid(source[error.pos])) from error


def filter_answer(value: Any) -> FilterAnswer:
    """Check the shape of a filter answer.

    Raises:
        AnswerError: A field has the wrong type.
    """
    fields = _fields(value, "ExtenderFilterResult")
    nodes = fields.get("nodes")
    return FilterAnswer(
        names=_names(fields.get("nodenames")),
        nodes=None if nodes is None else _node_items(nodes),
        failed=_reasons(fields.get("failednodes"), "FailedNodes"),
        unresolvable=_reasons(
            fields.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"
        ),
        error=_as(str, fields.get("error"), "ExtenderFilterResult.Error"),
    )


def score_answer(value: Any) -> list[tuple[str, int]]:
    """Check the shape of a prioritize answer: hosts and integers, hosts possibly repeated.

    Raises:
        AnswerError: A field has the wrong type, for instance a score that is not an integer.
    """
    return [_score(item) for item in _as(list, value, "v1.HostPriorityList")]


def preempt_answer(value: Any) -> dict[str, list[str]]:
    """Check the shape of a preempt answer: uids of victims per node, in the order given.

    Raises:
        AnswerError: A field has the wrong type; also for a null where kube-scheduler would crash.
    """
    field = "NodeNameToMetaVictims"
    nodes = _fields(value, "ExtenderPreemptionResult").get(field.lower())
    return {node: _uids(victims, node) for node, victims in _as(dict, nodes, field).items()}


def bind_answer(value: Any) -> str:
    """Return the error in a bind answer, "" for success.

    Raises:
        AnswerError: The field has the wrong type.
    """
    fields = _fields(value, "ExtenderBindingResult")
    return _as(str, fields.get("error"), "ExtenderBindingResult.Error")


def _refuse_constant(name: str) -> NoReturn:
    raise AnswerError(_invalid(name[0]))


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _invalid(character: str) -> str:
    return f"invalid character {character!r} looking for beginning of value"


def _fields(value: Any, kind: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _mismatch(value, f"value of type v1.{kind}")
    return {key.lower(): item for key, item in value.items()}


def _as(kind: type[T], value: Any, field: str) -> T:
    """Return a value as Go's type of a field; null is its zero value."""
    if value is None:
        return kind()
    wrong = not isinstance(value, kind) or isinstance(value, bool)
    if wrong or (kind is int and value not in _INT64):
        _mismatch(value, f"struct field {field} of type {_IN_GO[kind]}")
    found: T = value
    return found


def _names(value: Any) -> list[str] | None:
    field = "ExtenderFilterResult.NodeNames"
    if value is None:
        return None
    names = _as(list, value, field)
    if set(map(type, names)) <= {str}:  # thousands of names, and nearly always just that
        return names
    return [_as(str, name, field) for name in names]


def _score(item: Any) -> tuple[str, int]:
    if type(item) is dict and type(item.get("Score")) is int and "Host" in item:
        host, score = item["Host"], item["Score"]  # as nearly always, so no detours
    else:
        fields = _fields(item, "HostPriority")
        host, score = fields.get("host"), fields.get("score")
    return _as(str, host, "HostPriority.Host"), _as(int, score, "HostPriority.Score")


def _node_items(value: Any) -> list[dict[str, Any]]:
    items = _as(list, _fields(value, "NodeList").get("items"), "NodeList.items")
    for item in items:
        if not isinstance(item, dict):
            _mismatch(item, "struct field NodeList.items of type v1.Node")
    return items


def _uids(victims: Any, node: str) -> list[str]:
    if victims is None:
        raise AnswerError(f"null victims for node {node!r} (this crashes a real kube-scheduler)")
    pods = _as(list, _fields(victims, "MetaVictims").get("pods"), "MetaVictims.Pods")
    if None in pods:
        raise AnswerError(f"a null victim on node {node!r} (this crashes a real kube-scheduler)")
    return [_as(str, _fields(pod, "MetaPod").get("uid"), "MetaPod.UID") for pod in pods]


def _reasons(value: Any, field: str) -> dict[str, str]:
    return {key: _as(str, item, field) for key, item in _as(dict, value, field).items()}


def _mismatch(value: Any, target: str) -> NoReturn:
    match value:
        case bool():
            given = "bool"
        case int() | float():
            given = f"number {value}"
        case str():
            given = "string"
        case list():
            given = "array"
        case _:
            given = "object"
    raise AnswerError(f"json: cannot unmarshal {given} into Go {target}")
