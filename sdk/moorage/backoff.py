"""Spreads repeated tries over time, so that many clients do not come back all at once.

Called where requests are repeated: by the reflector, the binder, plugins that poll.
"""

import random
from collections.abc import Callable


class Backoff:
    """Waits with full jitter: each wait is random between zero and a ceiling that grows.

    Args:
        initial: The first ceiling, in seconds, above 0.
        maximum: The highest ceiling, in seconds, at least `initial`.
        factor: How much the ceiling grows from one wait to the next, at least 1.
        rand: Returns a random number in [0, 1).

    Raises:
        ValueError: A number is out of its range.
    """

    def __init__(
        self,
        initial: float,
        maximum: float,
        factor: float = 2.0,
        *,
        rand: Callable[[], float] = random.random,
    ) -> None:
        if not 0 < initial <= maximum or factor < 1:
            raise ValueError(
                f"cannot back off from {initial} s to {maximum} s by a factor of {factor}: "
                "0 < initial <= maximum and factor >= 1 are needed"
            )
        self._initial = initial
        self._maximum = maximum
        self._factor = factor
        self._rand = rand
        self._ceiling = initial

    def next(self, retry_after: float | None = None) -> float:
        """Return how long to wait before the next try, in seconds.

        A server's `retry_after` is a lower limit; the jitter comes on top of it.
        """
        wait = self._rand() * self._ceiling
        self._ceiling = min(self._ceiling * self._factor, self._maximum)
        return wait + max(retry_after or 0.0, 0.0)

    def reset(self) -> None:
        """Start over with short waits, after things went well."""
        self._ceiling = self._initial
