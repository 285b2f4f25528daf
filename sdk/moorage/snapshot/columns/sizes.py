"""How long the arrays of a snapshot are."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


def resized(column: npt.NDArray[T], capacity: int) -> npt.NDArray[T]:
    """Copy a column to another length: further rows are 0, rows beyond it go."""
    copy = np.zeros(capacity, column.dtype)
    kept = min(len(column), capacity)
    copy[:kept] = column[:kept]
    return copy
