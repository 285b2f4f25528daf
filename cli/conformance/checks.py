"""The checks: tests of pytest, which get from the plugin `Kit` what to ask.

The first line of a test's documentation is what docs/reference/conformance.md shows.
"""

import asyncio
import time
import warnings
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import pytest

from cli.conformance.kit import KIT
from cli.conformance.probe import (
    IDLE_SECONDS,
    NO_SUCH_NODE,
    Answer,
    Probe,
    connected,
    probing,
    survivors,
)
from cli.conformance.recordings import recording_names
from cli.conformance.requests import PREFIX, Object, Request, node, written
from cli.conformance.rules import ADVICE, RULES, decodes, failed
from moorage_host.kube_scheduler import VERBS
from sandbox.scheduler.extenders.client import AnswerError, FilterAnswer

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


@pytest.fixture(scope="session")
def probe(request: pytest.FixtureRequest) -> Iterator[Probe]:
    """Send requests to an extender."""
    kit = request.config.stash.get(KIT, None)
    if kit is None:
        pytest.exit("give --extender-url, with -p moorage_apps.conformance", returncode=2)
    with probing(kit.requests) as opened:
        yield opened


@pytest.fixture(autouse=True)
def concerned(request: pytest.FixtureRequest, probe: Probe) -> None:
    """Skip what does not concern the extender, and what takes long."""
    name = request.node.name.removeprefix("test_answers[").removeprefix("test_")
    verb = next((verb for verb in VERBS if name.startswith(verb)), None)
    if verb and not probe.offered(verb):
        pytest.skip("asked for with --bind only" if verb == "bind" else f"no {verb} verb")
    if name == "http_idle" and not request.config.stash[KIT].slow:
        pytest.skip("asked for with --slow only")


def reported(answer: Answer, text: str) -> str:
    """Return what kube-scheduler does with an answer, and which that is."""
    return f"kube-scheduler {text}\n  sent: {answer.request}\n  got: {answer}"


def succeeded(probe: Probe, answers: Iterable[Answer]) -> None:
    """Fail a check if kube-scheduler would take a call as failed."""
    for answer in answers:
        if text := failed(answer, probe.requests):
            pytest.fail(reported(answer, text), pytrace=False)


def ask(probe: Probe, *requests: Request) -> list[Answer]:
    """Send requests at the same time; fail if kube-scheduler would take a call as failed."""
    answers = probe.ask(*requests)
    succeeded(probe, answers)
    return answers


def cycle(probe: Probe, pod: Object | None = None, names: Iterable[str] | None = None) -> None:
    """Send filter, and prioritize for the survivors if there are several, for one pod."""
    names = list(probe.requests.nodes if names is None else names)
    if probe.config.filter_verb:
        (answer,) = ask(probe, probe.requests.scheduling("filter", pod, names))
        found = answer.content
        names = survivors(probe.config, found) if isinstance(found, FilterAnswer) else []
    if probe.config.prioritize_verb and len(names) > 1:
        ask(probe, probe.requests.scheduling("prioritize", pod, names))


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded(probe: Probe, version: str) -> None:
    """All requests that kube-scheduler {version} sent when it was recorded."""
    succeeded(probe, probe.replay(version))


# ---- filter


def test_filter_unknown_node(probe: Probe) -> None:
    """A node that the extender's cache does not have yet, twice: reasons stay as they are.

    The informers of kube-scheduler and extender run at their own pace.
    """
    request = probe.requests.scheduling("filter", names=[*probe.requests.nodes, NO_SUCH_NODE])
    answers = [ask(probe, request)[0] for _ in range(2)]
    found = [each.content for each in answers if isinstance(each.content, FilterAnswer)]
    reasons = [each.failed | each.unresolvable for each in found]
    if reasons[1:] and reasons[0] != reasons[1]:
        text = "writes the pod's condition again for each new text, and then tries the pod again"
        warnings.warn(reported(answers[1], text), stacklevel=1)


def test_filter_one_node(probe: Probe) -> None:
    """One node only, as for a nominated pod, which is filtered for its node alone first."""
    ask(probe, probe.requests.scheduling("filter", names=probe.requests.nodes[:1]))


def test_filter_group(probe: Probe) -> None:
    """Four pods of a group, each filtered again, before any bind.

    Pod groups (GenericWorkload) are tried on hypothetical states, with no hint of that.
    """
    fields = {"schedulingGroup": {"podGroupName": "moorage-conformance"}}
    for pod in [probe.requests.pod(f"member-{number}", **fields) for number in range(4)] * 2:
        cycle(probe, pod)


# ---- prioritize and preempt


def test_prioritize_unfiltered(probe: Probe) -> None:
    """A pod that the extender was not asked to filter.

    A replica, or an extender that was started again, gets prioritize without filter.
    """
    ask(probe, probe.requests.scheduling("prioritize", probe.requests.pod("unfiltered")))


def test_preempt_empty_victims(probe: Probe) -> None:
    """A candidate whose list of victims is empty, and one where it is null (#135486).

    Versions after 1.37 send candidates that only the extender rejected.
    """
    nodes = probe.requests.nodes
    none: tuple[list[str] | None, ...] = ([], None)
    for pods in none:
        victims = {nodes[0]: pods, nodes[-1]: ["victim-1", "victim-2"]}
        ask(probe, probe.requests.preemption({**victims}))


# ---- bind, always of pods that do not exist


def test_bind_missing_pod(probe: Probe) -> None:
    """The recorded binds, twice, of pods that do not exist: Error must be set each time.

    After an answer that was lost, kube-scheduler binds the pod again.
    """
    for version in probe.requests.versions():
        for recorded in probe.requests.recorded(version, "bind"):
            salt = probe.requests.salt
            args = recorded.args | {
                "PodName": f"{PREFIX}{salt}-{recorded.args['PodName']}",
                "PodUID": f"{salt}-{recorded.args['PodUID']}",
            }
            for _ in range(2):
                _refused(probe, Request("bind", written(args)))


def test_bind_concurrent(probe: Probe) -> None:
    """50 binds at the same time, each on its own connection."""
    _refused(probe, *(probe.requests.binding(number) for number in range(MANY)))


def _refused(probe: Probe, *requests: Request) -> None:
    for answer in ask(probe, *requests):
        if answer.content == "":
            text = (
                "takes the pod for bound and keeps it assumed on the node until it is deleted or "
                "kube-scheduler starts again: no Error, though there is no such pod"
            )
            pytest.fail(reported(answer, text), pytrace=False)


# ---- bodies


def test_http_large_pod(probe: Probe) -> None:
    """A pod of 1,400,000 bytes: frameworks refuse bodies of more than 1 MiB by default."""
    pod = probe.requests.pod("large")
    pod["metadata"]["annotations"] = {"data": "x" * POD_BYTES}
    cycle(probe, pod)


def test_http_large_cluster(probe: Probe) -> None:
    """5,000 names, or 1000 nodes of 12,000 bytes each.

    Most nodes are unknown to the extender, but the answer must come.
    """
    if probe.config.node_cache_capable:
        others = (f"moorage-conformance-{number}" for number in range(NODES))
        cycle(probe, names=[*probe.requests.nodes, *others][:NODES])
        return
    nodes = [node(f"moorage-conformance-{number}") for number in range(WHOLE_NODES)]
    for each in nodes:
        each["metadata"]["annotations"] = {"data": "x" * NODE_BYTES}
    pod = probe.requests.pod()
    args = {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    for verb in probe.offered("filter", "prioritize"):
        ask(probe, Request(verb, written(args)))


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
    cycle(probe, pod)


def test_http_unknown_fields(probe: Probe) -> None:
    """Fields that no version has yet."""
    pod = probe.requests.pod("newer", newerField={"mode": "New"}, podSet=["a"])
    pod["status"]["newerStatus"] = [1.5, None]
    for verb in probe.offered("filter", "prioritize"):
        request = probe.requests.scheduling(verb, pod)
        ask(probe, Request(verb, written({**request.args, "NewerArgument": {"x": 1}})))


def test_http_escapes(probe: Probe) -> None:
    """Text with escapes, quotes, and characters beyond ASCII."""
    pod = probe.requests.pod("text")
    pod["metadata"]["annotations"] = {"note": '<b>&amp;é漢字\u2028</b> "quoted" \\ \U0001f600\t'}
    cycle(probe, pod)


def test_http_malformed(probe: Probe) -> None:
    """Bodies that are no JSON, then a good one: they must not end the process."""
    for verb in probe.offered("filter", "prioritize", "preempt"):
        for body in (b"", b"{", b"null", b"[]", b'{"Pod":1,"NodeNames":2}'):
            (answer,) = probe.send(Request(verb, body))
            if answer.failure:
                text = (
                    "never sends this; whoever can reach the extender can break its connections, "
                    "perhaps the process"
                )
                warnings.warn(reported(answer, text), stacklevel=1)
                break
    cycle(probe, probe.requests.pod("after-malformed"))


# ---- connections


def test_http_concurrent(probe: Probe) -> None:
    """8 callers at the same time: several kube-schedulers may share an extender."""
    pods = [probe.requests.pod(f"caller-{number}") for number in range(CALLERS)]
    verbs = probe.offered("filter", "prioritize")
    ask(probe, *(probe.requests.scheduling(verb, pod) for pod in pods for verb in verbs))


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
        ask(probe, request)


def test_http_idle(probe: Probe) -> None:
    """A connection without a call for 92 s: Go keeps it for 90 s.

    A POST on a connection that the server closes just then fails, and Go does not repeat it.
    """
    for verb in probe.offered("filter", "prioritize")[:1]:
        request = probe.requests.scheduling(verb)
        seconds = probe.run(_until_closed(probe, request))
        if seconds is not None:
            pytest.fail(
                f"kube-scheduler uses a connection again for {IDLE_SECONDS:g} s, and does not "
                "repeat a POST that ends in EOF because the server closes it just then: now and "
                f"then a call fails (the server closes idle ones after {seconds:.1f} s)",
                pytrace=False,
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
        f"Content-Length: {len(request.body)}",
        "Content-Type: application/json",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


# ---- all answers; the last test, since it looks at those to the others


@pytest.mark.parametrize("rule", RULES)
def test_answers(probe: Probe, rule: str) -> None:
    """What is looked at in every answer."""
    if not probe.replayed:  # only some checks run
        probe.replay(probe.requests.versions()[-1])
    broken, verb = RULES[rule], rule.partition("-")[0]
    read = [
        each
        for each in probe.answers
        if verb in (each.request.verb, "http") and not failed(each, probe.requests)
    ]
    if broken is not decodes:
        read = [each for each in read if not isinstance(each.content, AnswerError)]
    found = [reported(each, text) for each in read if (text := broken(each, probe.requests))]
    if found:
        text = f"{found[0]}\n  {len(found)} of {len(read)} answers are like this"
        if broken not in ADVICE:
            pytest.fail(text, pytrace=False)
        warnings.warn(text, stacklevel=1)
