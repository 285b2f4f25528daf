"""The nodes and pods that are measured: realistic, and the same in every run.

A node is what kube-scheduler's cache has of a real one: about 8.4 kB of JSON with labels,
conditions, images and managedFields. Nearly every node takes the pods of the bench: one in a
hundred has a taint, one in a hundred is full, one in fifty has a taint with PreferNoSchedule.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

Object = dict[str, Any]

PODS_PER_NODE = 30
ZONES = 3
IMAGES = 26
"""Images of a node, of kubelet's at most 50."""

GIB = 1 << 30
CORES = (8, 16, 32, 64)
GIB_PER_CORE = 4
PODS_MAXIMUM = 110
REQUESTS = ((100, 128), (250, 512), (50, 64), (500, 1024), (20, 256))
"""Of the cluster's workloads in turn: thousandths of a core, and MiB."""

WORKLOADS = 40
NAMESPACE = "default"
CREATED = "2026-11-20T10:00:00Z"
HEARTBEAT = "2026-11-21T09:15:00Z"


def node_name(index: int) -> str:
    """Return the name of a node, of the length that clouds give."""
    return f"ip-10-{index >> 16}-{index >> 8 & 255}-{index & 255}.eu-west-1.compute.internal"


def node(index: int) -> Object:
    """Build a node as kubelet and the cloud's controllers would leave it."""
    name, zone = node_name(index), f"eu-west-1{'abc'[index % ZONES]}"
    amounts = _amounts(index)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"{index:08x}-aaaa-4000-8000-000000000000",
            "labels": _labels(index, name, zone),
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": _address(index),
                "csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.aws.com":"i-{index:017x}"}}',
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": CREATED,
            "managedFields": _managed_fields(),
        },
        "spec": {"providerID": f"aws:///{zone}/i-{index:017x}", "taints": _taints(index)},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": list(conditions()),
            "addresses": [
                {"type": "InternalIP", "address": _address(index)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(index),
            "images": [_image(index, number) for number in range(IMAGES)],
        },
    }


def peers_node(index: int) -> Object:
    """Build a node that also has what extenders of others read: room for volumes, and GPUs."""
    made = node(index)
    free = (index % 90 + 1) * GIB
    made["metadata"]["annotations"]["capacity.topolvm.io/00default"] = str(free)
    made["status"]["allocatable"] |= {"aliyun.com/gpu-mem": "64", "aliyun.com/gpu-count": "4"}
    return made


def light_node(index: int) -> Object:
    """Build a node of about half a kilobyte that takes every pod of the bench."""
    name = node_name(index)
    amounts = {"cpu": "32", "memory": "128Gi", "pods": str(PODS_MAXIMUM)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": f"eu-west-1{'abc'[index % ZONES]}",
            },
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def peers_pod() -> Object:
    """Build a pod that asks for a volume of 10 GiB, and a part of a GPU."""
    made = new_pod()
    made["metadata"]["annotations"]["capacity.topolvm.io/00default"] = str(10 * GIB)
    resources = made["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts["aliyun.com/gpu-mem"] = "4"
    return made


def nodes(count: int) -> Iterator[Object]:
    """Build the nodes of a cluster."""
    return map(node, range(count))


def running_pod(node_index: int, number: int) -> Object:
    """Build one of the pods that a node runs."""
    workload = (node_index * 7 + number * 3) % WORKLOADS
    template = _workload(workload)
    name = f"service-{workload}-6d4cf56db6-{node_index:05x}{number:02x}"
    uid = f"{node_index:08x}-{number:04x}-4000-8000-000000000000"
    return {
        **template,
        "metadata": {**template["metadata"], "name": name, "uid": uid},
        "spec": {**template["spec"], "nodeName": node_name(node_index)},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }


def running_pods(node_count: int, each: int = PODS_PER_NODE) -> Iterator[Object]:
    """Build all pods that the nodes of a cluster run, a node after the other."""
    for index in range(node_count):
        for number in range(each):
            yield running_pod(index, number)


def new_pod() -> Object:
    """Build the template of the pods that are scheduled in the bench."""
    made = _pod("web", 250, 256)
    made["metadata"]["name"] = "web-7c5ddbdf54"
    return made


@cache
def _workload(number: int) -> Object:
    """Return what all pods of a workload share, one object, so that a million takes little room."""
    return _pod(f"service-{number}", *REQUESTS[number % len(REQUESTS)])


def _pod(app: str, millicores: int, mebibytes: int) -> Object:
    amounts = {"cpu": f"{millicores}m", "memory": f"{mebibytes}Mi"}
    mount = {
        "name": "kube-api-access",
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "generateName": f"{app}-",
            "labels": {"app": app, "pod-template-hash": "6d4cf56db6", "tier": "backend"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-6d4cf56db6",
                    "uid": "3c9a1fd0-2f0e-4a52-8b1a-6a5dfb1d9c11",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "schedulerName": "moorage",
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "priority": 0,
            "terminationGracePeriodSeconds": 0,  # nobody plays the kubelet
            "containers": [
                {
                    "name": "main",
                    "image": f"registry.example.com/team/{app}:1.27.3",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": "PORT", "value": "8080"}, {"name": "MODE", "value": "live"}],
                    "resources": {"requests": amounts, "limits": {"memory": amounts["memory"]}},
                    "volumeMounts": [mount],
                }
            ],
            "volumes": [{"name": "kube-api-access", "emptyDir": {}}],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _amounts(index: int) -> Object:
    cores = CORES[index % len(CORES)]
    full = index % 100 == 50
    return {
        "cpu": "2" if full else str(cores),
        "memory": f"{cores * GIB_PER_CORE}Gi",
        "ephemeral-storage": "100Gi",
        "pods": str(PODS_PER_NODE if full else PODS_MAXIMUM),
    }


def _taints(index: int) -> list[Object]:
    if index % 100 == 7:
        return [{"key": "dedicated", "value": "databases", "effect": "NoSchedule"}]
    if index % 50 == 9:
        return [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]
    return []


def _labels(index: int, name: str, zone: str) -> Object:
    kind = f"m6i.{CORES[index % len(CORES)] // 4}xlarge"
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": kind,
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": "eu-west-1",
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": zone,
    }


def conditions(heartbeat: str = HEARTBEAT) -> Iterator[Object]:
    """Build the conditions of a healthy node."""
    for kind, reason, message in (
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "KubeletReady", "kubelet is posting ready status"),
    ):
        yield {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": heartbeat,
            "lastTransitionTime": CREATED,
            "reason": reason,
            "message": message,
        }


def _node_info(index: int) -> Object:
    return {
        "machineID": f"{index:032x}",
        "systemUUID": f"ec2{index:029x}",
        "bootID": f"{index:08x}-7d6c-4b3a-9f10-2a6d7d3c5e01",
        "kernelVersion": "6.12.46-66.121.amzn2023.x86_64",
        "osImage": "Amazon Linux 2023.9.20260905",
        "containerRuntimeVersion": "containerd://2.1.5",
        "kubeletVersion": "v1.36.3",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _image(index: int, number: int) -> Object:
    which = (index * 5 + number * 11) % 200
    image = f"registry.example.com/team/service-{which}"
    return {
        "names": [f"{image}@sha256:{which * 0x9E3779B97F4A7C15:064x}", f"{image}:1.{which}.3"],
        "sizeBytes": 20_000_000 + which * 3_141_593,
    }


def _managed_fields() -> list[Object]:
    conditions: Object = {
        f'k:{{"type":"{kind}"}}': {"f:lastHeartbeatTime": {}, "f:message": {}, "f:status": {}}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    }
    status = {"f:allocatable": {"f:cpu": {}}, "f:conditions": conditions, "f:images": {}}
    labels: Object = {
        "f:labels": {".": {}, "f:kubernetes.io/arch": {}, "f:kubernetes.io/hostname": {}}
    }
    return [
        _managed("kubelet", {"f:metadata": labels}),
        _managed("kubelet", {"f:status": status}) | {"subresource": "status"},
    ]


def _managed(manager: str, fields: Object) -> Object:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": HEARTBEAT,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _address(index: int) -> str:
    return f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"
