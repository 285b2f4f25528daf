"""A request to an extender, and its answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from cli.conformance.findings import shortened

Verb = Literal["filter", "prioritize", "preempt", "bind"]
VERBS: tuple[Verb, ...] = get_args(Verb)

Object = dict[str, Any]

SHOWN_BODY = 160
"""Characters of a body in a message."""


@dataclass(frozen=True)
class Request:
    """A request to one verb.

    Attributes:
        verb: The verb; its path is in the configuration.
        body: As it is sent.
        headers: What differs from kube-scheduler's headers.
        is_chunked: Whether it is sent without a Content-Length, which kube-scheduler never does.
    """

    verb: Verb
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    is_chunked: bool = False

    @cached_property
    def args(self) -> Object:
        """The body as an object, with keys as Go writes them."""
        args: Object = json.loads(self.body)
        return args

    def __str__(self) -> str:
        """Return which request this is, and how it begins."""
        text = shortened(self.body.decode("utf-8", "replace"), SHOWN_BODY)
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
class Answer:
    """What came back.

    Attributes:
        status: The HTTP status, 0 if there was none.
        headers: The headers.
        body: The body, decompressed.
        failure: Why there is no answer, in the words of kube-scheduler.
        seconds: How long it took.
        redirects: The statuses of the redirects that were followed.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    seconds: float = 0.0
    redirects: tuple[int, ...] = ()

    def __str__(self) -> str:
        text = self.body.decode("utf-8", "replace")
        return self.failure or f"{self.status} {text}".rstrip()
