"""Patches, beside those that are recorded requests."""

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.requests.patches import apply_strategic, merge

plain = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["a", "b", "conditions", "finalizers"]), plain)


@given(objects, objects)
def test_no_patch_changes_the_old_object(old: dict[str, Any], change: dict[str, Any]) -> None:
    before = deepcopy(old)
    merge(old, change)
    with suppress(StatusError):  # an element without its merge key
        apply_strategic(old, change)
    assert old == before


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        (
            {"env": [{"name": "A"}, {"name": "B"}]},
            {"env": [{"name": "C"}], "$setElementOrder/env": [{"name": c} for c in "CAB"]},
            {"env": [{"name": c} for c in "ABC"]},
        ),
        (
            {"ports": [{"containerPort": 53, "protocol": "TCP"}]},
            {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 53, "protocol": p} for p in ("TCP", "UDP")]},
        ),
    ],
)
def test_directives_of_strategic_patches(old: Any, patch: Any, expected: Any) -> None:
    assert apply_strategic(old, patch) == expected


def test_a_directive_that_would_be_taken_for_another_is_refused() -> None:
    with pytest.raises(StatusError, match="replace") as refused:
        apply_strategic({"a": {"x": 1}}, {"a": {"$patch": "replace", "y": 2}})
    assert refused.value.code == 400
