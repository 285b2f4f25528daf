"""Unknown fields: refused, kept with a warning, or kept, as fieldValidation asks."""

import pytest

from tests.sandbox.apiserver.resources.definitions import DEFINITIONS, RACKS, definition, rack
from tests.sandbox.apiserver.support import PODS, Http, pod

STRICT = "fieldValidation=Strict"


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
async def test_without_it_they_are_kept_with_a_warning(http: Http, query: str) -> None:
    reply = await http.send("POST", PODS + query, pod(schedulerNme="moorage"))
    assert (reply.code, reply.body["spec"]["schedulerNme"]) == (201, "moorage")
    assert reply.headers["Warning"] == r'299 - "unknown field \"spec.schedulerNme\""'


async def test_ignore_says_nothing(http: Http) -> None:
    reply = await http.send("POST", f"{PODS}?fieldValidation=Ignore", pod(schedulerNme="moorage"))
    assert reply.code == 201
    assert "Warning" not in reply.headers


async def test_a_patch_is_refused_for_the_fields_that_it_adds(http: Http) -> None:
    await http.create(PODS, pod(old="kept"))
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await http.patch(f"{PODS}/web?{STRICT}", labels)).code == 200
    reply = await http.patch(f"{PODS}/web?{STRICT}", {"spec": {"schedulerNme": "a"}})
    assert reply.code == 422
    assert 'unknown field "spec.schedulerNme"' in reply.message
    assert "spec.old" not in reply.message


async def test_odd_field_names_do_not_break_the_header(http: Http) -> None:
    reply = await http.send("POST", PODS, pod() | {'a\r\nX: "\\é': 1})
    assert reply.code == 201
    assert "X" not in reply.headers


async def test_custom_objects_have_any_fields(http: Http) -> None:
    await http.create(DEFINITIONS, definition())
    created = await http.create(f"{RACKS}?{STRICT}", rack(spec={"free": {"any": 1}}))
    assert created["spec"] == {"free": {"any": 1}}


async def test_quantities_and_numbers_or_texts_take_both(http: Http) -> None:
    resources = {"limits": {"cpu": 1, "memory": "1Gi"}}
    probe = {"httpGet": {"port": "http"}}
    container = {"name": "a", "image": "b", "resources": resources, "livenessProbe": probe}
    reply = await http.send("POST", f"{PODS}?{STRICT}", pod(containers=[container]))
    assert reply.code == 201, reply.text
    wrong = {"name": "a", "image": "b", "env": [{"name": "PORT", "value": 8080}]}
    reply = await http.send("POST", PODS, pod("b", containers=[wrong]))
    assert reply.code == 400
    assert "spec.containers[0].env[0].value" in reply.message
