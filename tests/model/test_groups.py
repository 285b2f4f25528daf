"""Random groups, for a moment; `python -m tools.model --groups 1000` runs more of them."""

import pytest

from tools.model.groups import Run


@pytest.mark.parametrize("seed", [1, 4, 13])
def test_no_group_is_bound_in_part_stuck_or_left_with_claims(seed: int) -> None:
    assert Run(seed, groups=8).run().problems == []
