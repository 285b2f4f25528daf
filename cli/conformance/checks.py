"""The checks: tests of pytest, which `cli.conformance.kit` runs and gives their fixture.

A test sends requests; what is wrong with the answers are findings of `probe`, which fail the test.
The first line of a test's documentation is what docs/reference/conformance.md shows.
"""

import asyncio
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from cli.conformance.findings import Severity
from cli.conformance.judging import Reading, survivors
from cli.conformance.kit import KIT, check_of
from cli.conformance.probe import IDLE_SECONDS, NO_SUCH_NODE, Probe, connected, probing
from cli.conformance.recordings import recording_names
from cli.conformance.requests import PREFIX, Answer, Object, Request, node, written
from sandbox.scheduler.extenders.client import (
    AnswerError,
    FilterAnswer,
    decode_answer,
    filter_answer,
)

VERSIONS = tuple(dict.fromkeys(name.rpartition("-")[0] for name in recording_names()))

NODES = 5000
"""The largest cluster that Kubernetes supports has this many."""

WHOLE_NODES = 1000
NODE_BYTES = 12_000
"""A node with images and managedFields has 10 to 40 kB."""

POD_BYTES = 1_400_000
"""etcd takes 1.5 MiB."""

MANY = 50
"""Binds at the same time: kube-scheduler has no limit, and one connection for each."""

CALLERS = 8
"""kube-schedulers at the same time, or calls of one that gave up on earlier ones."""

MARGIN = 2.0
"""Seconds for which a connection must outlast Go's."""

ANSWERS = {
    "filter-decodes": "the answer is an ExtenderFilterResult as Go decodes it",
    "filter-error": "Error is for failures, not for rejections",
    "filter-field": "survivors are in the field that the request used",
    "filter-subset": "survivors were sent",
    "filter-reasons": "every node is a survivor or has a reason",
    "filter-both": "no survivor is rejected too",
    "filter-duplicates": "no survivor is listed twice",
    "filter-grouped-reasons": "reasons are short and without the node's name",
    "filter-unresolvable": "rejections are in FailedAndUnresolvableNodes",
    "filter-nodes-as-sent": "whole nodes come back as they were sent",
    "prioritize-decodes": "the answer is a list of hosts and scores",
    "prioritize-integers": 'scores are integers: not 7.0, not "7"',
    "prioritize-range": "scores are 0 to 10, or to what --score-scale says",
    "prioritize-unknown-hosts": "scores are for nodes that were sent",
    "prioritize-duplicates": "no host is listed twice",
    "prioritize-missing-hosts": "every node has a score, or none has",
    "preempt-decodes": "the answer is an ExtenderPreemptionResult as Go decodes it",
    "preempt-null": "no null where kube-scheduler dereferences it",
    "preempt-field": "victims are in NodeNameToMetaVictims, in both modes",
    "preempt-candidates": "nodes were sent",
    "preempt-victims": "victims were sent, and a node has at least one",
    "preempt-order": "victims stay in their order",
    "bind-decodes": "the answer is an ExtenderBindingResult as Go decodes it",
    "http-redirect": "nothing is redirected",
    "http-keep-alive": "connections stay open",
    "http-framing": "answers have a Content-Length and are not chunked",
    "http-in-time": "answers take less than 80 % of httpTimeout",
}
"""What is looked at in every answer, by the check that reports it."""


@pytest.fixture(scope="session")
def probe(request: pytest.FixtureRequest) -> Iterator[Probe]:
    """Send requests to an extender."""
    kit = request.config.stash.get(KIT, None)
    if kit is None:
        pytest.exit("give --extender-url, with -p moorage_apps.conformance", returncode=2)
    with probing(getattr(request, "param", kit.requests[0])) as opened:
        yield opened
    kit.sent.update(opened.sent)


@pytest.fixture(autouse=True)
def selection(request: pytest.FixtureRequest, probe: Probe) -> None:
    """Skip what does not concern the extender."""
    request.config.stash[KIT].begin(probe, check_of(request.node))


@pytest.mark.parametrize("version", VERSIONS, ids="recorded-{}".format)
def test_recorded(probe: Probe, version: str) -> None:
    """All requests that kube-scheduler {version} sent when it was recorded."""
    probe.replay(version)


# ---- filter


def test_filter_unknown_node(probe: Probe) -> None:
    """A node that the extender's cache does not have yet.

    The informers of kube-scheduler and extender run at their own pace.
    """
    names = [*probe.requests.nodes, NO_SUCH_NODE]
    probe.ask(probe.requests.scheduling("filter", names=names))


def test_filter_one_node(probe: Probe) -> None:
    """One node only, as for a nominated pod, which is filtered for its node alone first."""
    probe.ask(probe.requests.scheduling("filter", names=probe.requests.nodes[:1]))


def test_filter_repeated(probe: Probe) -> None:
    """The same request twice: reasons stay as they are.

    There may be two filter calls in one cycle.
    """
    request = probe.requests.scheduling("filter", names=[*probe.requests.nodes, NO_SUCH_NODE])
    answers = [probe.send(request) for _ in range(2)]
    one, other = (each.failed | each.unresolvable for each in map(_read, answers))
    changed = [name for name in one if name in other and one[name] != other[name]]
    if changed:
        probe.report(
            request,
            answers[1],
            Severity.STYLE,
            "writes the pod's condition again for each new text, and that update makes it try "
            "the pod again",
            got=f"{one[changed[0]]!r}, then {other[changed[0]]!r}",
        )


def test_filter_group(probe: Probe) -> None:
    """Four pods of a group, each filtered again, before any bind.

    Pod groups (GenericWorkload) are tried on hypothetical states, with no hint of that.
    """
    fields = {"schedulingGroup": {"podGroupName": "moorage-conformance"}}
    for pod in [probe.requests.pod(f"member-{number}", **fields) for number in range(4)] * 2:
        probe.cycle(pod)


def _read(answer: Answer) -> FilterAnswer:
    """Return a filter answer as kube-scheduler reads it; an empty one if it cannot."""
    if answer.failure or answer.status != 200:
        return filter_answer({})
    try:
        return filter_answer(decode_answer(answer.body))
    except AnswerError:
        return filter_answer({})


# ---- prioritize and preempt


def test_prioritize_unfiltered(probe: Probe) -> None:
    """A pod that the extender was not asked to filter.

    A replica, or an extender that was started again, gets prioritize without filter.
    """
    probe.ask(probe.requests.scheduling("prioritize", probe.requests.pod("unfiltered")))


def test_preempt_unfiltered(probe: Probe) -> None:
    """Two candidates for a pod that the extender was not asked to filter.

    All nodes may fail kube-scheduler's own filters: then preempt is the first call.
    """
    nodes = probe.requests.nodes
    victims = {nodes[0]: ["victim-1", "victim-2"], nodes[-1]: ["victim-3"]}
    probe.ask(probe.requests.preemption({**victims}))


def test_preempt_empty_victims(probe: Probe) -> None:
    """A candidate whose list of victims is empty, and one where it is null (#135486).

    Versions after 1.37 send candidates that only the extender rejected.
    """
    nodes = probe.requests.nodes
    empty: tuple[list[str] | None, ...] = ([], None)
    for pods in empty:
        request = probe.requests.preemption({nodes[0]: pods, nodes[-1]: ["victim-3"]})
        answer = probe.send(request)
        if answer.failure or answer.status != 200:
            probe.report(
                request,
                answer,
                Severity.BREAKS,
                "gives up preemption for the pod, also on the nodes where it would help",
                versions="after 1.37",
            )
        else:
            probe.ask(request)


# ---- bind, always of pods that do not exist; the last one reports what all of them found


def test_bind_repeated(probe: Probe) -> None:
    """The same bind twice: the same answer.

    After an answer that was lost, kube-scheduler binds the pod again.
    """
    request = probe.requests.binding()
    answers = [_bind(probe, request)[0] for _ in range(2)]
    if None not in answers and bool(answers[0]) != bool(answers[1]):
        probe.report(
            request,
            probe.send(request),
            Severity.BREAKS,
            "takes the second answer for the truth: the pod is bound twice or forgotten",
            got=f"{answers[0]!r}, then {answers[1]!r}",
        )


def test_bind_concurrent(probe: Probe) -> None:
    """50 binds at the same time, each on its own connection."""
    _bind(probe, *(probe.requests.binding(number) for number in range(1, MANY + 1)))


def test_bind_missing_pod(probe: Probe) -> None:
    """The recorded binds, of pods that do not exist: Error must be set."""
    for version in probe.requests.versions():
        for recorded in probe.requests.recorded(version, "bind"):
            salt = probe.requests.salt
            args = recorded.args | {
                "PodName": f"{PREFIX}{salt}-{recorded.args['PodName']}",
                "PodUID": f"{salt}-{recorded.args['PodUID']}",
            }
            _bind(probe, Request("bind", written(args)))


def _bind(probe: Probe, *requests: Request) -> list[Reading | None]:
    """Send binds at the same time; a success is a finding, since there are no such pods."""
    answers = probe.ask_all(requests)
    for request, answer in zip(requests, answers, strict=True):
        if answer == "":
            probe.report(
                request,
                probe.send(request),
                Severity.BREAKS,
                "takes the pod for bound and keeps it assumed on the node until it is deleted or "
                "kube-scheduler starts again",
                check="bind-missing-pod",
                got="no Error, though there is no such pod",
            )
    return answers


# ---- bodies


def test_http_large_pod(probe: Probe) -> None:
    """A pod of 1,400,000 bytes: frameworks refuse bodies of more than 1 MiB by default."""
    pod = probe.requests.pod("large")
    pod["metadata"]["annotations"] = {"data": "x" * POD_BYTES}
    probe.cycle(pod)


def test_http_large_cluster(probe: Probe) -> None:
    """5,000 names, or 1000 nodes of 12,000 bytes each.

    Most nodes are unknown to the extender, but the answer must come.
    """
    if probe.config.node_cache_capable:
        others = (f"moorage-conformance-{number}" for number in range(NODES))
        probe.cycle(names=[*probe.requests.nodes, *others][:NODES])
        return
    nodes = [node(f"moorage-conformance-{number}") for number in range(WHOLE_NODES)]
    for each in nodes:
        each["metadata"]["annotations"] = {"data": "x" * NODE_BYTES}
    pod = probe.requests.pod()
    args = {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    for verb in probe.offered("filter", "prioritize"):
        probe.ask(Request(verb, written(args)))


def test_http_minimal_pod(probe: Probe) -> None:
    """A pod in which every optional field is absent or null.

    Go writes nil maps and lists as null where they are not left out.
    """
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
    probe.cycle(pod)


def test_http_unknown_fields(probe: Probe) -> None:
    """Fields that no version has yet."""
    pod = probe.requests.pod("newer", newerField={"mode": "New"}, podSet=["a"])
    pod["status"]["newerStatus"] = [1.5, None]
    for verb in probe.offered("filter", "prioritize"):
        request = probe.requests.scheduling(verb, pod)
        probe.ask(Request(verb, written({**request.args, "NewerArgument": {"x": 1}})))


def test_http_escapes(probe: Probe) -> None:
    """Text with escapes, quotes, and characters beyond ASCII."""
    pod = probe.requests.pod("text")
    pod["metadata"]["annotations"] = {"note": '<b>&amp;é漢字\u2028</b> "quoted" \\ \U0001f600\t'}
    probe.cycle(pod)


def test_http_malformed(probe: Probe) -> None:
    """Bodies that are no JSON, then a good one: they must not end the process."""
    for verb in probe.offered("filter", "prioritize", "preempt"):
        for body in (b"", b"{", b"null", b"[]", b'{"Pod":1,"NodeNames":2}'):
            request = Request(verb, body)
            answer = probe.send(request)
            if answer.failure:
                probe.report(
                    request,
                    answer,
                    Severity.STYLE,
                    "never sends this; whoever can reach the extender can break its connections, "
                    "perhaps the process",
                )
                break
    probe.cycle(probe.requests.pod("after-malformed"))


def test_http_not_managed(probe: Probe) -> None:
    """A pod without a resource that the extender manages: kube-scheduler does not ask."""
    pod = probe.requests.pod("not-managed")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    for verb in probe.offered("filter"):
        request = probe.requests.scheduling(verb, pod)
        answer = probe.send(request)
        if sorted(survivors(probe.config, _read(answer))) != sorted(request.names):
            probe.report(
                request,
                answer,
                Severity.STYLE,
                "does not ask about this pod; a caller without managedResources does, and the pod "
                "needs nothing of this extender",
            )


# ---- connections


def test_http_concurrent(probe: Probe) -> None:
    """8 callers at the same time: several kube-schedulers may share an extender."""
    probe.ask_all(
        probe.requests.scheduling(verb, probe.requests.pod(f"caller-{number}"))
        for number in range(CALLERS)
        for verb in probe.offered("filter", "prioritize")
    )


def test_http_abandoned(probe: Probe) -> None:
    """8 calls whose caller goes away, then a good one.

    After its timeout kube-scheduler closes the connection and goes on with the next pod.
    """

    async def leave(request: Request) -> None:
        for _ in range(CALLERS):
            _, writer = await connected(probe.config)
            writer.write(_head(probe, request) + request.body)
            writer.close()

    for verb in probe.offered("filter", "prioritize")[:1]:
        request = probe.requests.scheduling(verb)
        probe.run(leave(request))
        probe.ask(request)


def test_http_idle(probe: Probe) -> None:
    """A connection without a call for 92 s: Go keeps it for 90 s.

    A POST on a connection that the server closes just then fails, and Go does not repeat it.
    """
    for verb in probe.offered("filter", "prioritize", "preempt")[:1]:
        if verb == "preempt":
            request = probe.requests.preemption({probe.requests.nodes[0]: ["victim"]})
        else:
            request = probe.requests.scheduling(verb)
        seconds = probe.run(_until_closed(probe, request))
        if seconds is not None:
            probe.report(
                request,
                Answer(),
                Severity.BREAKS,
                f"uses a connection again for {IDLE_SECONDS:g} s, and does not repeat a POST that "
                "ends in EOF because the server closes it just then: now and then a call fails",
                got=f"the server closes an idle connection after {seconds:.1f} s ({verb})",
            )


async def _until_closed(probe: Probe, request: Request) -> float | None:
    """Return after how many seconds the server closes a connection, None if it keeps it."""
    reader, writer = await connected(probe.config)
    try:
        writer.write(_head(probe, request) + request.body)
        began = time.monotonic()
        try:
            async with asyncio.timeout(IDLE_SECONDS + MARGIN):
                while await reader.read(65536):
                    began = time.monotonic()
        except TimeoutError:
            return None
        return time.monotonic() - began
    finally:
        writer.close()


def _head(probe: Probe, request: Request) -> bytes:
    url = urlsplit(probe.url(request.verb))
    lines = (
        f"POST {url.path or '/'} HTTP/1.1",
        f"Host: {url.netloc.rpartition('@')[2]}",
        "User-Agent: Go-http-client/1.1",
        f"Content-Length: {len(request.body)}",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


# ---- all answers; the last test, since it reports what was found in those to the others


@pytest.mark.parametrize("rule", ANSWERS)
def test_answers(probe: Probe, rule: str) -> None:
    """What is looked at in every answer."""
    if not probe.replayed:  # only some checks run
        probe.replay(probe.requests.versions()[-1])
