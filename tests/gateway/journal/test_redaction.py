"""What of objects that plugins read is in a journal."""

import json
from typing import Any

from gateway.journal.records import Redaction
from moorage.models import ObjectKind, ObjectName

SETS = ObjectKind("apps/v1", "statefulsets")
SECRETS = ObjectKind("v1", "secrets")


def written(kind: ObjectKind, obj: Any, *kept: str) -> Any:
    redaction = Redaction(kept)
    name = ObjectName(kind, "default", "name")
    return json.loads(redaction.object(name, json.dumps(obj).encode()))


def test_a_template_keeps_the_names_of_variables_and_not_their_values() -> None:
    env = [{"name": "PASSWORD", "value": "s3cret"}, {"name": "HOST", "valueFrom": {"x": "y"}}]
    containers = [{"name": "main", "image": "app", "env": env}]
    template = {"metadata": {"annotations": {"a/token": "t", "a/kept": "k"}}}
    obj = {"spec": {"template": {**template, "spec": {"containers": containers}}}}
    found = written(SETS, obj, "a/k*")["spec"]["template"]
    assert found["metadata"]["annotations"] == {"a/kept": "k"}
    assert found["spec"]["containers"][0]["env"] == [
        {"name": "PASSWORD", "value": "redacted"},
        {"name": "HOST", "valueFrom": {"x": "y"}},
    ]
    assert found["spec"]["containers"][0]["image"] == "app"


def test_a_secret_keeps_its_keys() -> None:
    obj = {"metadata": {"name": "name"}, "data": {"key": "czNjcmV0"}, "stringData": {"more": "x"}}
    found = written(SECRETS, obj)
    assert found == {"metadata": {"name": "name"}, "data": {"key": ""}, "stringData": {"more": ""}}
