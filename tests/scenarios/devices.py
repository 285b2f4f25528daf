"""Devices that the control plane allocates for extended resources (KEP-5004)."""

from tools.planes.embedded import Object
from tools.planes.objects import pod

FPGA = "example.com/fpga"
"""What the class's `extendedResourceName` is."""

IMPLICIT = "deviceclass.resource.kubernetes.io/fpga"
"""What the class backs whatever that is."""

DRIVER = "fpga.example.com"


def device_class() -> Object:
    """Build the class of all devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "fpga"},
        "spec": {"extendedResourceName": FPGA, "selectors": [selector]},
    }


def resource_slice(node: str, devices: int) -> Object:
    """Build what the driver of a node publishes."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"device-{number}"} for number in range(devices)],
        },
    }


def requesting(name: str, resource: str, profile: str = "fitting") -> Object:
    """Build a pod that requests one of a resource."""
    amounts = {resource: "1"}
    resources = {"requests": {"cpu": "10m", **amounts}, "limits": amounts}
    container = {"name": "main", "image": "app:1", "resources": resources}
    return pod(name, profile, spec={"containers": [container]})


def claim(name: str) -> Object:
    """Build a claim of one device."""
    request = {"name": "one", "exactly": {"deviceClassName": "fpga"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def claiming(name: str, profile: str = "fitting") -> Object:
    """Build a pod that uses the claim of its name."""
    resources = {"requests": {"cpu": "10m"}, "claims": [{"name": "device"}]}
    container = {"name": "main", "image": "app:1", "resources": resources}
    claims = [{"name": "device", "resourceClaimName": name}]
    return pod(name, profile, spec={"containers": [container], "resourceClaims": claims})
