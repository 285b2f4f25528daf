"""The columns of nodes that are more than one field."""

from datetime import datetime

from sandbox.apiserver.printing.table import Cell, Column
from sandbox.apiserver.resources.resource import Object

_ROLE = "node-role.kubernetes.io/"


def _status(node: Object, _: datetime) -> str:
    conditions = {
        c.get("type"): c.get("status") for c in node.get("status", {}).get("conditions", ())
    }
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    unschedulable = node.get("spec", {}).get("unschedulable")
    return f"{ready},SchedulingDisabled" if unschedulable else ready


def _roles(node: Object, _: datetime) -> str:
    labels = node["metadata"].get("labels", {})
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles |= {labels[key] for key in ("kubernetes.io/role",) if labels.get(key)}
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(kind: str) -> Cell:
    def cell(node: Object, _: datetime) -> str:
        addresses = node.get("status", {}).get("addresses", ())
        return next((a.get("address", "") for a in addresses if a.get("type") == kind), "<none>")

    return cell


STATUS = (Column(name="Status", cell=_status), Column(name="Roles", cell=_roles))
ADDRESSES = (
    Column(name="Internal-IP", cell=_address("InternalIP"), wide=True),
    Column(name="External-IP", cell=_address("ExternalIP"), wide=True),
)
