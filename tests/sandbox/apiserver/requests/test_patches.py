"""The kinds of patches, over HTTP and as functions that do what the standards say."""

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.requests.patches import apply_json_patch, apply_strategic, merge
from tests.sandbox.apiserver.support import EVENTS, Http


async def test_events_are_patched_in_the_form_of_their_api_version(http: Http) -> None:
    await http.create(EVENTS, {"metadata": {"name": "e"}, "message": "a"})
    path = "/apis/events.k8s.io/v1/namespaces/default/events/e"
    change = {
        "note": "b",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
    } | dict.fromkeys(("reportingController", "reportingInstance", "action", "reason"), "x")
    reply = await http.patch(path, change)
    assert reply.code == 200, reply.text
    assert (await http.get(f"{EVENTS}/e")).body["message"] == "b"


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
    ("old", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": [1]}, [{"op": "replace", "path": "/a/0", "value": 2}], {"a": [2]}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": [1], "c": [1]}),
        ({"a/~": 1}, [{"op": "test", "path": "/a~1~0", "value": 1}], {"a/~": 1}),
    ],
)  # fmt: skip
def test_json_patches_follow_rfc_6902(old: Any, operations: Any, expected: Any) -> None:
    before = deepcopy(old)
    assert apply_json_patch(old, operations) == expected
    assert old == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "add", "path": "/a/3", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "replace", "path": "/a/1", "value": 1},
        {"op": "add", "path": "/c/d/e", "value": 1},
        {"op": "add", "path": "/c/d", "value": 1},
        {"op": "test", "path": "/c", "value": 2},
        {"op": "remove", "path": ""},
    ],
)
def test_json_patches_refuse_paths_that_are_not_there(operation: Any) -> None:
    with pytest.raises(StatusError) as refused:
        apply_json_patch({"a": [1], "c": 1}, [operation])
    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        ({"a": {"x": 1}}, {"a": {"$patch": "delete"}}, {}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"$retainKeys": ["y"], "y": 2}}, {"a": {"y": 2}}),
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
