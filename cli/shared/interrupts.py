"""How a command ends by a signal before it has a loop that handles signals."""

import os
import signal

INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a command that was asked to end before its result."""


def leave_at(*numbers: signal.Signals) -> None:
    """Let signals end this process at once, while there is nothing to undo.

    KeyboardInterrupt is lost in some places, such as callbacks of the collector during imports.
    What whoever started this process has ignored stays so.
    """
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(INTERRUPTED))


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, for commands that undo something."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
