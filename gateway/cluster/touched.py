"""When each row last changed: its node, or a pod on it."""

import numpy as np
import numpy.typing as npt

Generations = npt.NDArray[np.int64]


class Touched:
    """The generation of the state in which each row last changed.

    Attributes:
        at: By row; longer than there are rows. The last item belongs to no row and never changes.
    """

    def __init__(self) -> None:
        self.at: Generations = np.zeros(1024, np.int64)

    def note(self, row: int, generation: int) -> None:
        """Note that a row changes in a generation."""
        if row >= len(self.at) - 1:
            self.at = np.concatenate([self.at, np.zeros_like(self.at)])
        self.at[row] = generation
