"""Which extended resources DeviceClasses back: their devices are allocated by kube-scheduler.

A pod requests such a resource as it does one of a device plugin (KEP-5004). Each class backs the
resource that bears its name, and the one that its `extendedResourceName` names.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from moorage.models import Metadata

PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""What precedes the name of a class in the name of its own resource."""


class DeviceClassSpec(Struct, frozen=True, rename="camel"):
    """What of a DeviceClass's spec concerns extended resources."""

    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True):
    """A kind of devices, of resource.k8s.io/v1."""

    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


def backed_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Return the names of all extended resources that *classes* back."""
    names: set[str] = set()
    for device_class in classes:
        names.add(PREFIX + device_class.metadata.name)
        names.add(device_class.spec.extended_resource_name or "")
    return frozenset(names - {""})
