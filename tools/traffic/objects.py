"""The cluster and the pods whose extender traffic is recorded."""

from typing import Any

from tools.planes.embedded import Object

PROFILE = "rec"
NGINX = "docker.io/library/nginx:1.7.9"
AMOUNTS = {"ephemeral-storage": "100Gi", "example.com/gpu": "4", "memory": "16Gi", "pods": "20"}
FREE = {"cpu": "7800m", "ephemeral-storage": "90Gi", "memory": "15Gi"}
FORECAST = {"mean-free-cpu": "2500", "std-free-cpu": "400"}


def _node(number: int) -> Object:
    name = f"worker-{number}"
    labels = {
        "disk": "hdd" if number == 5 else "ssd",
        "gen": str(number + 2),
        "kubernetes.io/hostname": name,
        "nodeGroup": str(number % 3),
        "zone": f"z{number % 2}",
    }
    capacity = {"cpu": "8", **AMOUNTS}
    status: Object = {
        "capacity": capacity,
        "allocatable": capacity | FREE,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    if number in (1, 4):
        digest = "nginx@sha256:" + "b" * 64
        status["images"] = [{"names": [NGINX, digest], "sizeBytes": 91_000_000}]
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": FORECAST},
        "spec": {"taints": [taint] if number == 2 else []},
        "status": status,
    }


def _priority_class(name: str, value: int) -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def _pod(name: str, image: str, cpu: str = "", *, namespace: str = "", **fields: Any) -> Object:
    container: Object = {"name": "c", "image": image}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata = {"name": name, "namespace": namespace or "default"}
    metadata |= {"labels": fields.pop("labels", {})}
    spec = {"schedulerName": PROFILE, "containers": [container], **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _in(key: str, *values: str, operator: str = "In") -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def _rich() -> Object:
    """Build a pod with affinities, tolerations and text that JSON encoders of Go escape."""
    required = {"matchExpressions": [_in("zone", "z0", "z1"), _in("gen", "3", operator="Gt")]}
    preferred = {"matchExpressions": [_in("disk", "hdd", operator="NotIn")]}
    near = {"labelSelector": {"matchLabels": {"app": "plain"}}, "topologyKey": "zone"}
    apart = {
        "labelSelector": {"matchExpressions": [_in("app", "rich")]},
        "topologyKey": "kubernetes.io/hostname",
    }
    when, later = "requiredDuringScheduling", "preferredDuringScheduling"
    ignored = "IgnoredDuringExecution"
    affinity = {
        "nodeAffinity": {
            when + ignored: {"nodeSelectorTerms": [required]},
            later + ignored: [{"weight": 7, "preference": preferred}],
        },
        "podAffinity": {later + ignored: [{"weight": 3, "podAffinityTerm": near}]},
        "podAntiAffinity": {when + ignored: [apart]},
    }
    web = {
        "name": "a",
        "image": NGINX,
        "env": [{"name": "PASSWORD", "value": 's3cret "quoted"'}],
        "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
        "resources": {
            "limits": {"cpu": "1", "memory": "128Mi"},
            "requests": {"cpu": "250m", "ephemeral-storage": "1Gi", "memory": "64Mi"},
        },
    }
    gpus = {
        "name": "b",
        "image": "registry.example.com/x@sha256:" + "a" * 64,
        "resources": {
            "limits": {"example.com/gpu": "2"},
            "requests": {"cpu": 1, "example.com/gpu": "2", "memory": 1_000_000_000},
        },
    }
    init = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
    sidecar = {"requests": {"cpu": "0.05", "memory": "128e6"}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "rich"}},
    }
    pod = _pod(
        "rich",
        "",
        labels={"app": "rich", "nodeGroup": "1", "tekton.dev/pipelineRun": "run-1"},
        affinity=affinity,
        containers=[web, gpus],
        initContainers=[
            {"name": "init", "image": "busybox", "resources": init},
            {
                "name": "side",
                "image": "busybox:1",
                "resources": sidecar,
                "restartPolicy": "Always",
            },
        ],
        nodeSelector={"disk": "ssd"},
        priorityClassName="high",
        terminationGracePeriodSeconds=5,
        tolerations=[
            {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        topologySpreadConstraints=[spread],
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "cm", "configMap": {"name": "nope", "optional": True}},
        ],
    )
    pod["metadata"]["annotations"] = {"note": "<b>&amp;\xe9\u6f22\u5b57\u2028</b>"}
    return pod


def _filler(number: int) -> Object:
    return _pod(
        f"filler-{number}",
        "f:1",
        "6",
        labels={"app": "filler"},
        priorityClassName="low",
        terminationGracePeriodSeconds=0,
        tolerations=[{"operator": "Exists"}],
    )


CLUSTER = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    _priority_class("high", 100_000),
    _priority_class("low", 10),
    *map(_node, range(6)),
]

FIRST = [
    _pod("plain", "nginx:1.7.9", labels={"app": "plain"}),
    _rich(),
    _pod(
        "best-effort-in-team", "a:b", namespace="team-a", labels={"tekton.dev/pipelineRun": "run-1"}
    ),
]
"""Pods that many nodes can take."""

FILLERS = [_filler(number) for number in range(1, 7)]
"""One for each node; the last of them has one feasible node, so that nothing is scored."""

PREEMPTOR = _pod("preemptor", "p:1", "5", priorityClassName="high")
"""A pod that evicts a filler."""
