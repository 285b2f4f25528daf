"""Bodies that are unusual and right, and such as are wrong."""

import json
from collections.abc import Iterator
from typing import Any

from cli.conformance.checks.check import Check, Probe
from cli.conformance.exchange import Object, Request
from cli.conformance.findings import Severity
from cli.conformance.requests import node, written

NODES = 5000
"""The largest cluster that Kubernetes supports has this many."""

WHOLE_NODES = 1000
NODE_BYTES = 12_000
"""A node with images and managedFields has 10 to 40 kB."""

POD_BYTES = 1_400_000
"""etcd takes 1.5 MiB."""


def body_checks() -> Iterator[Check]:
    """Yield the checks of bodies."""
    checks = {
        "http-large-pod": (f"a pod of {POD_BYTES:,} bytes", large_pod),
        "http-large-cluster": (
            f"{NODES:,} names, or {WHOLE_NODES} nodes of {NODE_BYTES:,} bytes each",
            large_cluster,
        ),
        "http-minimal-pod": ("a pod in which every optional field is absent or null", minimal_pod),
        "http-unknown-fields": ("fields that no version has yet", unknown_fields),
        "http-escapes": ("text with escapes, quotes, and characters beyond ASCII", escapes),
        "http-any-case": ("keys in lower case: Go reads them in any", any_case),
        "http-malformed": ("bodies that are no JSON, then a good one", malformed),
    }
    for name, (about, run) in checks.items():
        yield Check(name=name, about=about, run=run)
    yield Check(
        name="http-not-managed",
        about="a pod without a resource that the extender manages: kube-scheduler does not ask",
        run=not_managed,
        needs_resources=True,
    )


async def large_pod(probe: Probe) -> None:
    """Frameworks for HTTP refuse bodies of more than 1 MiB by default."""
    pod = probe.requests.pod("large")
    pod["metadata"]["annotations"] = {"data": "x" * POD_BYTES}
    await probe.cycle("http-large-pod", pod)


async def large_cluster(probe: Probe) -> None:
    """Most nodes are unknown to the extender, but the answer must come."""
    requests, check = probe.requests, "http-large-cluster"
    if probe.client.config.node_cache_capable:
        others = (f"moorage-conformance-{number}" for number in range(NODES))
        names = [*requests.nodes, *others][:NODES]
        await probe.cycle(check, names=names)
        return
    names = [f"moorage-conformance-{number}" for number in range(WHOLE_NODES)]
    nodes = [_padded(name) for name in names]
    args = {"Pod": requests.pod(), "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    for verb in probe.offered("filter", "prioritize"):
        await probe.ask(check, Request(verb, written(args)))


async def minimal_pod(probe: Probe) -> None:
    """Go writes nil maps and lists as null where they are not left out."""
    whole = probe.requests.pod("minimal")
    metadata = {key: whole["metadata"][key] for key in ("name", "namespace", "uid")}
    container: Object = {"name": "c", "resources": {}}
    if probe.requests.resource:
        container = whole["spec"]["containers"][0]
    pod = {
        "metadata": {**metadata, "labels": None, "creationTimestamp": None},
        "spec": {"containers": [container], "tolerations": None},
        "status": {},
    }
    await probe.cycle("http-minimal-pod", pod)


async def unknown_fields(probe: Probe) -> None:
    """A decoder that refuses unknown fields breaks with the next version of Kubernetes."""
    pod = probe.requests.pod("newer", newerField={"mode": "New"}, podSet=["a"])
    pod["status"]["newerStatus"] = [1.5, None]
    for verb in probe.offered("filter", "prioritize"):
        request = probe.requests.scheduling(verb, pod)
        more = Request(verb, written({**request.args, "NewerArgument": {"x": 1}}))
        await probe.ask("http-unknown-fields", more)


async def escapes(probe: Probe) -> None:
    r"""Go escapes <, > and & as \u003c and so on."""
    pod = probe.requests.pod("text")
    pod["metadata"]["annotations"] = {"note": '<b>&amp;é漢字\u2028</b> "quoted" \\ \U0001f600\t'}
    await probe.cycle("http-escapes", pod)


async def any_case(probe: Probe) -> None:
    """Other callers than kube-scheduler write keys as they like."""
    for verb in probe.offered("filter", "prioritize"):
        request = probe.requests.scheduling(verb)
        lower = Request(verb, written({key.lower(): item for key, item in request.args.items()}))
        answer, usual = await probe.send(lower), await probe.send(request)
        if answer.status != usual.status or _kept(answer.body) != _kept(usual.body):
            probe.report(
                "http-any-case",
                lower,
                answer,
                Severity.STYLE,
                "never sends this; other callers do, and extenders in Go understand it",
            )


async def malformed(probe: Probe) -> None:
    """What is no request must be refused, and must not end the process."""
    for verb in probe.offered("filter", "prioritize", "preempt"):
        for body in (b"", b"{", b"null", b"[]", b'{"Pod":1,"NodeNames":2}'):
            request = Request(verb, body)
            answer = await probe.send(request)
            if answer.failure:
                probe.report(
                    "http-malformed",
                    request,
                    answer,
                    Severity.STYLE,
                    "never sends this; whoever can reach the extender can break its connections, "
                    "perhaps the process",
                )
                break
    await probe.cycle("http-malformed", probe.requests.pod("after-malformed"))


async def not_managed(probe: Probe) -> None:
    """Another caller may ask; every node should pass."""
    pod = probe.requests.pod("not-managed")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    for verb in probe.offered("filter"):
        request = probe.requests.scheduling(verb, pod)
        answer = await probe.send(request)
        if answer.status != 200 or _kept(answer.body) != sorted(request.names):
            probe.report(
                "http-not-managed",
                request,
                answer,
                Severity.STYLE,
                "does not ask about this pod; a caller without managedResources does, and the pod "
                "needs nothing of this extender",
            )


def _padded(name: str) -> Object:
    made = node(name)
    made["metadata"]["annotations"] = {"data": "x" * NODE_BYTES}
    return made


def _kept(body: bytes) -> Any:
    """Return the survivors of a filter answer or the hosts of a prioritize answer, sorted."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if isinstance(value, dict):
        fields = {key.lower(): item for key, item in value.items()}
        nodes = (fields.get("nodes") or {}).get("items") or ()
        names = fields.get("nodenames") or [item["metadata"]["name"] for item in nodes]
        return sorted(names)
    return value if value is None else sorted(json.dumps(item, sort_keys=True) for item in value)
