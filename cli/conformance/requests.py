"""Requests as kube-scheduler writes them: recorded ones, and such with one peculiarity."""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cli.conformance.recordings import recorded_requests, recording_names
from moorage.models import decode_pod
from moorage_host.kube_scheduler import ExtenderConfig, Verb
from sandbox.scheduler.extenders.client import Extender

Object = dict[str, Any]

SHOWN = 160
"""Characters of a body in a message."""

RECORDED_NODES = tuple(f"worker-{number}" for number in range(6))
RECORDED_RESOURCE = "example.com/gpu"
RECORDED_PROFILE = '"schedulerName":"rec"'
BEST_SCORE = 10
"""MaxExtenderPriority."""

PREFIX = "moorage-conformance-"
"""How the names of pods begin that bind requests are about; there are no such pods."""


@dataclass(frozen=True)
class Request:
    """A request to one verb, with its body as it is sent."""

    verb: Verb
    body: bytes

    @cached_property
    def args(self) -> Object:
        """The body as an object, with keys as Go writes them."""
        args: Object = json.loads(self.body)
        return args

    def __str__(self) -> str:
        """Return which request this is, and how it begins."""
        text = shortened(self.body.decode("utf-8", "replace"))
        try:
            args = self.args
            if self.verb == "bind":
                return f"bind of {args['PodNamespace']}/{args['PodName']} to {args['Node']}: {text}"
            pod = args["Pod"]["metadata"]
            many = self.victims if self.verb == "preempt" else self.names
            return f"{self.verb} of {pod['namespace']}/{pod['name']}, {len(many)} nodes: {text}"
        except (ValueError, LookupError, TypeError):
            return f"{self.verb}: {text}"

    @cached_property
    def names(self) -> list[str]:
        """The nodes that a filter or prioritize request is about, in order."""
        if self.args["NodeNames"] is not None:
            return list(self.args["NodeNames"])
        return [node["metadata"]["name"] for node in self.args["Nodes"]["items"]]

    @cached_property
    def victims(self) -> dict[str, list[str]]:
        """The UIDs of the victims by node in a preempt request."""
        given = self.args["NodeNameToMetaVictims"]
        if given is not None:
            return {n: [pod["UID"] for pod in of["Pods"] or ()] for n, of in given.items()}
        whole = self.args["NodeNameToVictims"]
        return {n: [p["metadata"]["uid"] for p in of["Pods"] or ()] for n, of in whole.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Writes requests for one extender.

    Attributes:
        config: Its entry: names or whole nodes, and the resources that it manages.
        nodes: The nodes that requests are about.
        scheduler_name: That of all pods; "" leaves it as it was recorded.
        best_score: The highest score that the extender documents.
        salt: Part of the names and UIDs of pods that do not exist.
    """

    config: ExtenderConfig
    nodes: tuple[str, ...] = RECORDED_NODES
    scheduler_name: str = ""
    best_score: int = BEST_SCORE
    salt: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def mode(self) -> str:
        """The second part of a recording's name."""
        return "names" if self.config.node_cache_capable else "nodes"

    @property
    def resource(self) -> str:
        """A resource that the extender manages, "" if it manages everything."""
        return next((resource.name for resource in self.config.managed_resources), "")

    def versions(self) -> list[str]:
        """Return the recordings for this extender, such as 1.37."""
        mode = f"-{self.mode}"
        return [name.removesuffix(mode) for name in recording_names() if name.endswith(mode)]

    def recorded(self, version: str, *verbs: Verb) -> Iterator[Request]:
        """Yield what kube-scheduler sent, about the nodes and the resource of this extender."""
        extender = Extender(self.config)
        for each in recorded_requests(f"{version}-{self.mode}"):
            if each.verb in verbs:
                request = Request(each.verb, self._adapted(each.body).encode())
                pod = None if each.verb == "bind" else decode_pod(json.dumps(request.args["Pod"]))
                if pod is None or extender.is_interested(pod):
                    yield request

    def pod(self, name: str = "pod", **fields: Any) -> Object:
        """Return a pod as kube-scheduler sends it: without kind, with a UID."""
        amounts = {"cpu": "10m"} | ({self.resource: "1"} if self.resource else {})
        return {
            "metadata": {
                "name": f"{PREFIX}{name}",
                "namespace": "default",
                "uid": f"{self.salt}-{name}",
                "creationTimestamp": "2026-11-20T10:00:00Z",
            },
            "spec": {
                "containers": [{"name": "c", "image": "nginx", "resources": {"requests": amounts}}],
                "schedulerName": self.scheduler_name or "default-scheduler",
                **fields,
            },
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        }

    def scheduling(
        self, verb: Verb, pod: Object | None = None, names: Iterable[str] | None = None
    ) -> Request:
        """Return a filter or prioritize request."""
        names = list(self.nodes if names is None else names)
        args: Object = {"Pod": pod or self.pod(), "Nodes": None, "NodeNames": names}
        if not self.config.node_cache_capable:
            args |= {"Nodes": {"metadata": {}, "items": list(map(node, names))}, "NodeNames": None}
        return Request(verb, written(args))

    def preemption(self, victims: dict[str, Sequence[str] | None]) -> Request:
        """Return a preempt request; victims are names of pods by node, None for null."""
        meta, key = self.config.node_cache_capable, "NodeNameToVictims"
        given = {
            name: {
                "Pods": None if pods is None else [self._victim(pod, meta=meta) for pod in pods],
                "NumPDBViolations": 0,
            }
            for name, pods in victims.items()
        }
        args = {"Pod": self.pod("preemptor"), key: None, "NodeNameToMetaVictims": given}
        if not meta:
            args |= {key: given, "NodeNameToMetaVictims": None}
        return Request("preempt", written(args))

    def binding(self, number: int = 0) -> Request:
        """Return a bind request for a pod that does not exist."""
        args = {
            "PodName": f"{PREFIX}{self.salt}-{number}",
            "PodNamespace": "default",
            "PodUID": f"{self.salt}-bind-{number}",
            "Node": self.nodes[number % len(self.nodes)],
        }
        return Request("bind", written(args))

    def _victim(self, name: str, *, meta: bool) -> Object:
        pod = self.pod(name)
        return {"UID": pod["metadata"]["uid"]} if meta else pod

    def _adapted(self, body: str) -> str:
        """Return a recorded body about other nodes, and with the extender's resource."""
        if self.resource:
            body = body.replace(f'"{RECORDED_RESOURCE}"', json.dumps(self.resource))
        if self.scheduler_name:
            body = body.replace(
                RECORDED_PROFILE, f'"schedulerName":{json.dumps(self.scheduler_name)}'
            )
        for recorded, real in zip(RECORDED_NODES, self.nodes, strict=False):
            body = body.replace(f'"{recorded}"', json.dumps(real))
        unused = set(RECORDED_NODES[len(self.nodes) :])
        return written(_without(json.loads(body), unused)).decode() if unused else body


def node(name: str) -> Object:
    """Return a small node as kube-scheduler sends it."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name},
            "managedFields": [{"manager": "kubelet", "operation": "Update"}],
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _without(args: Object, unused: Set[str]) -> Object:
    """Return a recorded body without the nodes for which the extender has no other one."""
    if args.get("NodeNames") is not None:
        args["NodeNames"] = [name for name in args["NodeNames"] if name not in unused]
    if args.get("Nodes") is not None:
        items = args["Nodes"]["items"]
        args["Nodes"]["items"] = [n for n in items if n["metadata"]["name"] not in unused]
    for key in ("NodeNameToVictims", "NodeNameToMetaVictims"):
        if args.get(key) is not None:
            args[key] = {name: of for name, of in args[key].items() if name not in unused}
    return args


def written(value: object) -> bytes:
    """Return JSON as Go writes it: compact, with <, > and & escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def shortened(text: str) -> str:
    """Return a text that is not too long for a message."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
