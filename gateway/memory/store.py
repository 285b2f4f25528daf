"""What is known of the newest pods, by their signature."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Known = TypeVar("Known")


class Store(Generic[Known]):
    """Keeps what is known of pods with the newest signatures, as long as nothing else changes."""

    def __init__(self, limit: int) -> None:
        """Keep what is known of at most *limit* signatures."""
        self._limit = limit
        self._moment: Hashable = None
        self._newest: OrderedDict[bytes, Known] = OrderedDict()

    def known(self, moment: Hashable, signature: bytes, make: Callable[[], Known]) -> Known:
        """Return what is known of a signature; *make* begins it.

        Args:
            moment: Whenever it is another one, nothing is known any more.
            signature: That of the pod.
            make: Makes what knows nothing yet.
        """
        if moment != self._moment:
            self._moment = moment
            self._newest.clear()
        known = self._newest.get(signature)
        if known is None:
            known = self._newest[signature] = make()
            if len(self._newest) > self._limit:
                self._newest.popitem(last=False)
        self._newest.move_to_end(signature)
        return known

    def forget(self, signature: bytes) -> None:
        """Know nothing of a signature any more."""
        self._newest.pop(signature, None)
