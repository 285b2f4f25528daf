"""The hooks of nodes. A new node gets no not-ready taint: no controller would lift it here."""

from collections.abc import Iterator

from moorage.models.decoding.codec import decode_node
from moorage.units.quantity import QuantityError, scaled
from sandbox.apiserver.errors import Cause, invalid_value, required, unsupported_value
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.resources.resource import Object

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _default(node: Object) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    for kind in ("capacity", "allocatable"):
        if kind in status:
            status[kind] = {name: str(value) for name, value in status[kind].items()}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _validate(node: Object) -> Iterator[Cause]:
    for index, taint in enumerate(node["spec"].get("taints", ())):
        path = f"spec.taints[{index}]"
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in EFFECTS:
            yield unsupported_value(f"{path}.effect", taint.get("effect", ""), EFFECTS)
    for kind in ("capacity", "allocatable"):
        for name, value in node["status"].get(kind, {}).items():
            yield from quantity_cause(f"status.{kind}[{name}]", name, value)


def quantity_cause(path: str, name: str, value: object) -> Iterator[Cause]:
    """Yield what is wrong with a quantity of a resource, if anything."""
    try:
        if isinstance(value, str | int | float) and scaled(name, value) >= 0:
            return
        problem = "must be greater than or equal to 0"
    except QuantityError as error:
        problem = str(error)
    yield invalid_value(path, value, problem)


HOOKS = Hooks(default=_default, validate=_validate, readable=decode_node, keeps_status=True)
