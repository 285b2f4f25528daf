import grpc
import msgspec
import pytest

from moorage.errors import (
    ConfigurationError,
    NoStateError,
    PluginFailedError,
    PluginLoadError,
    UnknownNameError,
)
from moorage.units.quantity import QuantityError
from moorage_host.rpc.errors import LONGEST_MESSAGE, CallError, reason_of, status_of

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallError(Code.NOT_FOUND, "no"), Code.NOT_FOUND),
        (ConfigurationError("no"), Code.INVALID_ARGUMENT),
        (PluginLoadError("no"), Code.INVALID_ARGUMENT),
        (UnknownNameError("no"), Code.NOT_FOUND),
        (NoStateError("no"), Code.FAILED_PRECONDITION),
        (PluginFailedError("P", "Filter", "no"), Code.INTERNAL),
        (msgspec.DecodeError("no"), Code.INVALID_ARGUMENT),
        (msgspec.ValidationError("no"), Code.INVALID_ARGUMENT),
        (QuantityError("no"), Code.INVALID_ARGUMENT),
    ],
)
def test_an_expected_error_keeps_its_text(error: Exception, code: Code) -> None:
    assert status_of(error) == (code, str(error))


@pytest.mark.parametrize("error", [KeyError("secret"), ValueError("secret"), OSError(5, "secret")])
def test_an_unexpected_error_says_nothing_of_its_own(error: Exception) -> None:
    code, message = status_of(error)
    assert code is Code.INTERNAL
    assert "secret" not in message


def test_running_out_of_time_has_a_stable_text() -> None:
    assert status_of(TimeoutError("after 0.123 s")) == status_of(TimeoutError())
    assert status_of(TimeoutError())[0] is Code.DEADLINE_EXCEEDED


def test_an_error_in_a_task_group_counts_as_if_it_had_none() -> None:
    refusal = CallError(Code.NOT_FOUND, "no such pod", reason="NO_POD")
    group = ExceptionGroup("tasks", [ExceptionGroup("tasks", [refusal])])
    assert status_of(group) == (Code.NOT_FOUND, "no such pod")
    assert reason_of(group) == "NO_POD"


def test_a_bug_beside_a_refusal_is_not_hidden_by_it() -> None:
    group = ExceptionGroup("tasks", [CallError(Code.NOT_FOUND, "no such pod"), KeyError("x")])
    assert status_of(group)[0] is Code.INTERNAL


def test_an_endless_message_is_cut() -> None:
    _, message = status_of(CallError(Code.INVALID_ARGUMENT, "x" * 100_000))
    assert len(message) == LONGEST_MESSAGE
    assert message.endswith("...")
