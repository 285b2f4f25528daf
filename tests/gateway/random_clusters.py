"""Random nodes, pods on them and pods to place, as the API server has them, for all plugins."""

from dataclasses import dataclass
from random import Random
from typing import Any

Object = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GIB = 1024**3
IMAGES = ("nginx:1.27", "redis:7", "example.com/app:2")


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """Makes objects from one seed."""

    random: Random

    def node(self, number: int) -> Object:
        """Make a node with labels, taints, images, and annotations that plugins measure by."""
        random, cpu = self.random, self.random.choice((2, 4, 8))
        labels = {HOSTNAME: f"n{number}", "disk": random.choice(("ssd", "hdd"))}
        if random.random() < 0.8:
            labels[ZONE] = random.choice("abc")
        annotations = {"congestion-factor": str(random.randint(0, 120))}
        if random.random() < 0.8:
            annotations |= {
                "price": str(random.randint(1, 9)),
                "mean-free-cpu": str(random.randint(0, 1000 * cpu)),
                "std-free-cpu": str(random.randint(0, 300)),
                "mean-free-memory": str(random.randint(0, 8 * GIB)),
                "std-free-memory": str(random.randint(0, GIB)),
            }
        taint = {"key": "gpu", "effect": random.choice(("PreferNoSchedule", "NoSchedule"))}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": labels, "annotations": annotations},
            "spec": {
                "taints": [taint] if random.random() < 0.3 else [],
                "unschedulable": random.random() < 0.1,
            },
            "status": {
                "allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "20"},
                "images": [
                    {"names": [image], "sizeBytes": random.randint(10**7, 10**9)}
                    for image in IMAGES
                    if random.random() < 0.5
                ],
            },
        }

    def pod(self, name: str, node: str = "") -> Object:
        """Make a pod on a node, or one with many wishes that is to be placed."""
        random = self.random
        labels = {"app": random.choice(("web", "db"))}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "controller": True}
        term = {
            "labelSelector": {"matchLabels": {"app": random.choice(("web", "db"))}},
            "topologyKey": random.choice((ZONE, HOSTNAME)),
        }
        side = random.choice(("podAffinity", "podAntiAffinity"))
        affinity: Object = {
            side: {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": random.randint(1, 100), "podAffinityTerm": term}
                ]
            }
        }
        if not node:
            affinity["nodeAffinity"] = _prefers_ssd(random.randint(1, 100))
        requests = {"cpu": f"{random.randint(1, 12)}00m", "memory": f"{random.randint(1, 9)}00Mi"}
        container = {
            "name": "c",
            "image": random.choice(IMAGES),
            "resources": {"requests": requests, "limits": {"cpu": "2"}},
        }
        spreads = [
            {
                "maxSkew": random.randint(1, 2),
                "topologyKey": key,
                "whenUnsatisfiable": random.choice(("ScheduleAnyway", "DoNotSchedule")),
                "labelSelector": {"matchLabels": labels},
            }
            for key in (ZONE, HOSTNAME)
        ]
        spec: Object = {
            "schedulerName": "moorage",
            "containers": [container],
            "affinity": affinity,
            "topologySpreadConstraints": spreads if random.random() < 0.6 else [],
        }
        uid = f"uid-{name}"
        metadata: Object = {"name": name, "namespace": "default", "uid": uid, "labels": labels}
        if random.random() < 0.5:
            metadata["ownerReferences"] = [owner | {"uid": "1"}]
        if node:
            spec["nodeName"] = node
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _prefers_ssd(weight: int) -> Object:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    preference = {"matchExpressions": [expression]}
    wish = {"weight": weight, "preference": preference}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
