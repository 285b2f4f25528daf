"""What kube-scheduler makes of answers: each rule returns what is wrong with one.

The first line of a rule's documentation is what docs/reference/conformance.md shows.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cli.conformance.probe import Answer, survivors
from cli.conformance.requests import Requests
from moorage_host.kube_scheduler import Verb
from sandbox.scheduler.extenders.client import AnswerError, FilterAnswer, decode_answer

Rule = Callable[[Answer, Requests], str]
"""Returns a sentence, "" for what is right. But for `decodes`, it gets what Go can decode."""

FACTOR = 10
"""MaxNodeScore / MaxExtenderPriority: what kube-scheduler multiplies a score by."""

LONG_REASON = 128
"""Characters: an event has 1,024 for all reasons, a pod's condition has all of them."""

FAILED: Mapping[Verb, str] = {
    "filter": "ends the pod's attempt with SchedulerError, without preemption; the next is in 1 to "
    "10 s",
    "prioritize": "goes on without a score of this extender, and logs that at level 5 only",
    "preempt": "gives up preemption for the pod, which stays unschedulable",
    "bind": "forgets the assumed pod and tries again in 1 to 10 s, also if the bind went through",
}
"""What kube-scheduler does when a call fails."""

IGNORED: Mapping[Verb, str] = {
    "filter": "skips the extender, since it is ignorable: all nodes pass",
    "prioritize": FAILED["prioritize"],
    "preempt": "skips the extender, since it is ignorable: all candidates stay as they are",
    "bind": "binds the pod itself, since the extender is ignorable",
}
"""The same for an extender that is ignorable."""


def consequence(verb: Verb, about: Requests) -> str:
    """Return what kube-scheduler does when a call fails."""
    return (IGNORED if about.config.ignorable else FAILED)[verb]


def failed(answer: Answer, about: Requests) -> str:
    """Return why kube-scheduler takes a call as failed, and what it does; "" if it does not.

    What cannot be decoded is for `decodes`; the Error of a bind may be right.
    """
    verb, content = answer.request.verb, answer.content
    if isinstance(content, FilterAnswer) and content.error:
        return f"takes Error as a failed call, not as a rejection: it {consequence(verb, about)}"
    if answer.failure:
        return f"has no answer and {consequence(verb, about)}"
    if answer.status == 200:
        return ""
    text = f"reads no body of a status {answer.status}, and {consequence(verb, about)}"
    if answer.status in (404, 405):
        text += " (if the extender has no such verb, leave it out of --verbs)"
    return text


def decodes(answer: Answer, about: Requests) -> str:
    """The answer to {verb} is as Go decodes it."""
    if not isinstance(answer.content, AnswerError):
        return ""
    verb = answer.request.verb
    if "crashes a real kube-scheduler" in str(answer.content):
        return "dereferences the null in its scheduling goroutine: the process panics"
    return f"cannot decode the answer ({answer.content}): it {consequence(verb, about)}"


# ---- filter


def filter_field(answer: Answer, about: Requests) -> str:
    """Survivors are in the field that the request used."""
    found, names_only = answer.content, about.config.node_cache_capable
    if names_only and found.names is None and found.nodes:
        return "takes whole nodes from an answer to names, and scores each as a node without pods"
    expected = set(answer.request.names) - set(_rejected(found))
    if expected and (found.names if names_only else found.nodes) is None:
        right = "NodeNames" if names_only else "Nodes"
        return (
            f"reads survivors from {right}, as in its request; that is null or absent, so all "
            "nodes are rejected"
        )
    return ""


def filter_subset(answer: Answer, about: Requests) -> str:
    """Survivors were sent."""
    unknown = set(survivors(about.config, answer.content)) - set(answer.request.names)
    if not unknown:
        return ""
    which = f"({len(unknown)} were not sent, such as {min(unknown)!r})"
    if about.config.node_cache_capable:
        text = 'refuses "a filtered node which is not found in the input node list"'
        return f"{text}: {consequence('filter', about)} {which}"
    return f"takes the node as it is, without its own filters {which}"


def filter_accounts(answer: Answer, about: Requests) -> str:
    """Every node is a survivor once, or has a reason."""
    sent, rejected = answer.request.names, _rejected(answer.content)
    kept = survivors(about.config, answer.content)
    if filter_field(answer, about):  # kube-scheduler reads the survivors elsewhere
        return ""
    if both := set(kept) & set(rejected):
        return f"keeps a node that is among the survivors and among the rejected: {min(both)!r}"
    twice = [name for name, count in Counter(kept).items() if count > 1]
    if twice and len(set(sent)) == len(sent):
        return f"has a node that is kept twice twice among the feasible ones: {twice[0]!r}"
    if silent := [name for name in sent if name not in rejected and name not in kept]:
        return (
            "rejects nodes without a reason, so that the numbers in the pod's event do not add up: "
            f"{len(silent)} of {len(sent)}, such as {silent[0]!r}"
        )
    return ""


def filter_short_reasons(answer: Answer, _: Requests) -> str:
    """Reasons are short and without the node's name."""
    for name, reason in _rejected(answer.content).items():
        if name in reason or len(reason) > LONG_REASON:
            return (
                "groups equal reasons only: one with a node's name, or a long one, fills the event "
                f"and the pod's condition: {reason!r}"
            )
    return ""


def filter_unresolvable(answer: Answer, _: Requests) -> str:
    """Rejections are in FailedAndUnresolvableNodes."""
    if not (count := len(answer.content.failed)):
        return ""
    return (
        "tries to preempt pods on a node in FailedNodes, in vain, since its own filters pass; "
        f"FailedAndUnresolvableNodes spares that ({count} nodes)"
    )


def filter_nodes_as_sent(answer: Answer, about: Requests) -> str:
    """Whole nodes come back as they were sent."""
    given = answer.request.args["Nodes"]
    if about.config.node_cache_capable or not given:
        return ""
    sent = {node["metadata"]["name"]: node for node in given.get("items") or ()}
    for node in answer.content.nodes or ():
        name = (node.get("metadata") or {}).get("name")
        if name in sent and (path := different(sent[name], node)):
            return (
                "scores the node with the fields of the answer; those that are missing are lost "
                f"({path} of {name!r} is not as it was sent)"
            )
    return ""


def _rejected(found: FilterAnswer) -> dict[str, str]:
    return found.failed | found.unresolvable


def different(sent: Any, got: Any, path: str = "") -> str:
    """Return the path of a field that differs, "" if none does; absent, null and empty are one."""
    if isinstance(sent, dict) and isinstance(got, dict):
        below = (different(sent.get(k), got.get(k), f"{path}.{k}") for k in {*sent, *got})
        return next(filter(None, below), "")
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        pairs = enumerate(zip(sent, got, strict=True))
        below = (different(one, other, f"{path}[{index}]") for index, (one, other) in pairs)
        return next(filter(None, below), "")
    return "" if sent == got or (_is_empty(sent) and _is_empty(got)) else path.lstrip(".")


def _is_empty(value: Any) -> bool:
    return all(map(_is_empty, value.values())) if isinstance(value, dict) else not value


# ---- prioritize


def prioritize_range(answer: Answer, about: Requests) -> str:
    """Scores are 0 to 10, or to what --score-scale says."""
    for host, score in answer.content:
        if not 0 <= score <= about.best_score:
            points = score * max(about.config.weight, 1) * FACTOR
            return (
                f"clamps nothing: {score} counts as {points:,} points, where no in-tree plugin "
                f"with weight 1 has more than 100 ({host!r} has {score}, and {about.best_score} is "
                "the most)"
            )
    return ""


def prioritize_hosts(answer: Answer, _: Requests) -> str:
    """Scores are for nodes that were sent, and no host is listed twice."""
    names, counts = answer.request.names, Counter(host for host, _ in answer.content)
    if unknown := counts.keys() - set(names):
        return f"drops scores of nodes that it did not ask about: {min(unknown)!r}"
    if twice := [host for host, count in counts.items() if count > names.count(host)]:
        return f"adds up all scores of a host that is listed several times: {twice[0]!r}"
    return ""


def prioritize_missing_hosts(answer: Answer, _: Requests) -> str:
    """Every node has a score, or none has."""
    scored = {host for host, _ in answer.content}
    missing = [name for name in answer.request.names if name not in scored]
    if not scored or not missing:
        return ""
    return (
        "counts 0 for a node without a score; since 1.36 it also comes last among equal nodes "
        f"({len(missing)} have none, such as {missing[0]!r})"
    )


# ---- preempt


def preempt_field(answer: Answer, _: Requests) -> str:
    """Victims are in NodeNameToMetaVictims, in both modes."""
    value = decode_answer(answer.body)
    keys = {key.lower() for key, item in value.items() if item} if isinstance(value, dict) else ()
    if "nodenametovictims" in keys and not answer.content:
        return "reads NodeNameToMetaVictims only, in both modes: it finds no candidate"
    return ""


def preempt_victims(answer: Answer, about: Requests) -> str:
    """Nodes and victims were sent, a node keeps one at least, and they stay in their order."""
    then, known = consequence("preempt", about), answer.request.victims
    for node, uids in answer.content.items():
        if (sent := known.get(node)) is None:
            return (
                "evicts pods of a node that was no candidate, without trying whether that helps; "
                f"preemption fails if there is no such node ({node!r})"
            )
        if sent and not uids:
            return f"expects at least one victim on a node, here {node!r}: it {then}"
        if unknown := [uid for uid in uids if uid not in sent]:
            return f"takes no victim that is not on {node!r} ({unknown[0]!r}): it {then}"
        if [uid for uid in sent if uid in uids] != uids:
            return (
                "takes the first victim as the one with the highest priority when it compares "
                f"nodes: those on {node!r} are in another order, or twice"
            )
    return ""


# ---- every verb


def http_connections(answer: Answer, _: Requests) -> str:
    """Connections stay open, and answers have a Content-Length."""
    if answer.headers.get("Connection", "").lower() == "close":
        return "opens a new connection for each call"
    if "chunked" in answer.headers.get("Transfer-Encoding", "").lower():
        return (
            "up to 1.37 may not read the last chunk of a chunked answer, and then closes the "
            "connection instead of using it again"
        )
    return ""


RULES: Mapping[str, Rule] = {
    "filter-decodes": decodes,
    "filter-field": filter_field,
    "filter-subset": filter_subset,
    "filter-accounts": filter_accounts,
    "filter-short-reasons": filter_short_reasons,
    "filter-unresolvable": filter_unresolvable,
    "filter-nodes-as-sent": filter_nodes_as_sent,
    "prioritize-decodes": decodes,
    "prioritize-range": prioritize_range,
    "prioritize-hosts": prioritize_hosts,
    "prioritize-missing-hosts": prioritize_missing_hosts,
    "preempt-decodes": decodes,
    "preempt-field": preempt_field,
    "preempt-victims": preempt_victims,
    "bind-decodes": decodes,
    "http-connections": http_connections,
}
"""What is looked at in every answer to a verb, by the name of the check."""

ADVICE = (filter_short_reasons, filter_unresolvable, prioritize_missing_hosts, http_connections)
"""What works, but slower or less readable than it could: a warning, no failure."""
