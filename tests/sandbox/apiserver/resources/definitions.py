"""A custom resource definition, and objects of it."""

from typing import Any

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RACKS = "/apis/example.com/v1/namespaces/default/racks"


def version(name: str = "v1", *, storage: bool = True, **fields: Any) -> Object:
    return {"name": name, "served": True, "storage": storage, **fields}


def definition(*versions: Object, scope: str = "Namespaced", **names: Any) -> Object:
    """Return a definition of racks in example.com."""
    called = {"plural": "racks", "kind": "Rack", "shortNames": ["rk"], **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "racks.example.com"},
        "spec": {
            "group": "example.com",
            "names": called,
            "scope": scope,
            "versions": list(versions) or [version()],
        },
    }


def rack(name: str = "r1", **fields: Any) -> Object:
    return {"metadata": {"name": name}, **fields}
