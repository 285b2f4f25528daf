"""The node object."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from moorage.models.base import NOTHING, Metadata, Model, read_only
from moorage.units.quantity import Quantity, scaled_by


class Taint(Model, frozen=True):
    """Repels pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Condition(Model, frozen=True):
    """A condition of the node, such as Ready."""

    type: str = ""
    status: str = ""


class ContainerImage(Model, frozen=True):
    """An image that the node has pulled; size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Model, frozen=True):
    """An address of the node; types are InternalIP, Hostname and so on."""

    type: str = ""
    address: str = ""


class NodeSpec(Model, frozen=True):
    """The desired state of the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Model, frozen=True):
    """The state that the node reports."""

    allocatable: Mapping[str, Quantity] = NOTHING
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class NodeManifest(Model, frozen=True, dict=True, gc=True):
    """A node as the API server has it; plugins get a `moorage.Node`, which knows its pods too."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """What pods may use: millicores of "cpu", bytes or counts of everything else."""
        amounts: dict[str, int] = {}
        for name, value in self.status.allocatable.items():
            amounts[name] = scaled_by(name == "cpu", value)
        return read_only(amounts)
