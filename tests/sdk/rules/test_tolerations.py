import pytest

from moorage.models import Taint, Toleration
from moorage.rules.taints import (
    DO_NOT_SCHEDULE,
    PREFER_NO_SCHEDULE,
    count_untolerated,
    tolerates,
    untolerated,
)

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration(key="gpu", value="a100", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="", value="a100"), True),
        (Toleration(key="gpu", value="h100"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="tpu", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="exists"), False),
    ],
)
def test_a_toleration_covers_taints_with_its_key_value_and_effect(
    toleration: Toleration, covered: bool
) -> None:
    assert tolerates(toleration, GPU) is covered


@pytest.mark.parametrize(
    ("operator", "bound", "value", "covered"),
    [
        ("Gt", "900", "950", True),
        ("Gt", "950", "950", False),
        ("Gt", "-5", "0", True),
        ("Lt", "950", "900", True),
        ("Lt", "900", "900", False),
        ("Lt", "0950", "900", False),
        ("Lt", "+950", "900", False),
        ("Gt", "0", "high", False),
        ("Gt", "", "1", False),
        ("Lt", "9223372036854775808", "1", False),
    ],
)
def test_gt_and_lt_cover_taints_with_a_greater_or_smaller_integer(
    operator: str, bound: str, value: str, covered: bool
) -> None:
    toleration = Toleration(key="sla", operator=operator, value=bound)
    assert tolerates(toleration, Taint(key="sla", value=value, effect="NoSchedule")) is covered


def test_the_first_taint_that_nothing_covers_is_reported() -> None:
    preferred = Taint(key="slow", effect="PreferNoSchedule")
    first, second = Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoSchedule")
    taints = (preferred, GPU, first, second)
    gpu = Toleration(key="gpu", operator="Exists")
    assert untolerated(taints, [gpu], DO_NOT_SCHEDULE) == first
    assert untolerated(taints, [gpu], PREFER_NO_SCHEDULE) == preferred
    assert untolerated(taints, [Toleration(operator="Exists")], DO_NOT_SCHEDULE) is None
    assert untolerated((), [], DO_NOT_SCHEDULE) is None


def test_taints_that_only_advise_are_counted() -> None:
    taints = [Taint(key=key, effect="PreferNoSchedule") for key in ("a", "b", "c")]
    tolerations = [
        Toleration(key="a", operator="Exists"),
        Toleration(key="b", operator="Exists", effect="NoSchedule"),
    ]
    assert count_untolerated([*taints, GPU], tolerations, PREFER_NO_SCHEDULE) == 2
    assert count_untolerated(taints, [], DO_NOT_SCHEDULE) == 0
