"""Explains pods: gathers what is known about one, and has the reason found.

What the gateway may not read, its caller may have read, see `AskedOfPod`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from gateway.cluster.pods import UNREAD, Waiting, list_pod
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import Decision, FilterRecord, ScoreRecord
from gateway.decisions.advice import Surveyor
from gateway.decisions.capacity import capacity_sentence, requests_of
from gateway.decisions.explanation import (
    CLAIMS_UNREAD,
    UNTRIED,
    Explanation,
    Holder,
    Object,
    PodEvidence,
    PodGroup,
    Survey,
    claims_of,
    last_seen,
    preemptor_of,
    why_no_attempt,
)
from gateway.decisions.log import DecisionLog, facts
from gateway.decisions.nodes import KeptArrays, view
from gateway.decisions.query import COMPARED_AT_ONCE, MayRead, Parameters
from gateway.decisions.sentences import sentences
from gateway.decisions.why import explain
from gateway.policy.policy import PolicyHolder
from moorage.errors import suggestion
from moorage.groups import Name, group_name
from moorage.models import Pod
from moorage.models.pod_spec import SchedulingGroup
from moorage_host.kube import KubeClient, KubeError

SECONDS = 2.0
"""How long the API server may take to show a pod; nothing is concluded from it after that."""

MOST_HOLDERS = 100
"""Pods among which those are looked for that hold nodes, the newest ones."""

MOST_SURVEYED = 20
"""Unlike pods of a list for which all nodes are looked at; the others get general advice."""

MOST_ASKED_ABOUT = 20
"""Nodes of which it is looked up which plugin rejected them."""

PodOf = Callable[[str, str], Awaitable[Object | None]]
"""Returns a pod by namespace and name: empty if there is none, None if the API server is silent."""

BindOf = Callable[[str], Object]
"""Returns the bind of a pod that is under way, by uid: see `PodEvidence.bind`."""

IsOutdated = Callable[[str], bool]
"""Returns whether nodes of a pod have changed since its verdict, by uid."""

EventsOf = Callable[[Object], Awaitable[Sequence[Object] | None]]
"""Returns the Events of a pod, newest first; None if they may not be read."""


async def read_events(client: KubeClient, pod: Object) -> Sequence[Object] | None:
    """Return the Events of a pod; see `EventsOf`."""
    path = f"/apis/events.k8s.io/v1/namespaces/{pod['metadata']['namespace']}/events"
    query = {"fieldSelector": f"regarding.uid={pod['metadata']['uid']}", "limit": "50"}
    try:
        response = await client.request("GET", path, query=query, timeout=SECONDS)
        items: list[Object] = msgspec.json.decode(response.check().body)["items"] or []
    except (KubeError, TimeoutError):
        return None
    return sorted(items, key=last_seen, reverse=True)


async def read_pod(client: KubeClient, namespace: str, name: str) -> Object | None:
    """Return a pod; see `PodOf`."""
    try:
        found = await list_pod(client, namespace, name, timeout=SECONDS)
        pod: Object = msgspec.json.decode(found[0]) if found else {}
    except UNREAD:
        return None
    return pod


PhaseT = TypeVar("PhaseT", FilterRecord | None, ScoreRecord | None)


class AskedOfPod(Parameters, frozen=True):
    """What a caller asks about a pod, and has read for themselves, since the gateway may not.

    Attributes:
        node: The node, or its host name, that is asked about; "" for none.
        missing: ResourceClaims of the pod that do not exist, with commas between them.
        claims: Those that do.
        needed: How many pods its group needs at once; 0 if that is not known.
    """

    node: str = ""
    missing: str = ""
    claims: str = ""
    needed: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class _Fellows:
    """The pods of the same group; all pods are looked at once an answer, if at all."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._nodes: dict[tuple[str, SchedulingGroup], list[str]] = {}
        self._labelled: dict[Name, list[Pod]] = {}
        self._is_read = False

    async def group(self, pod: Pod | None, needed: int = 0) -> PodGroup | None:
        """Return the group of Kubernetes that a pod belongs to; None if it has none."""
        group = pod.spec.scheduling_group if pod is not None else None
        if pod is None or group is None or not group.pod_group_name:
            return None
        await self._read()
        nodes = tuple(self._nodes.get((pod.namespace, group), ()))
        return PodGroup(name=group.pod_group_name, needed=needed, nodes=nodes)

    async def labelled(self, pod: Pod) -> Sequence[Pod]:
        """Return the pods of the group that a pod's labels name."""
        if (name := group_name(pod)) is None:
            return ()
        await self._read()
        return self._labelled.get(name, ())

    async def _read(self) -> None:
        if self._is_read:
            return
        self._is_read = True
        for count, uid in enumerate(self._state.known_pods(), start=1):
            if count % COMPARED_AT_ONCE == 0:
                await asyncio.sleep(0)  # cycles go on
            if (pod := self._state.pods.get(uid)) is None:
                continue
            if (group := pod.spec.scheduling_group) is not None:
                self._nodes.setdefault((pod.namespace, group), []).append(pod.spec.node_name)
            if (name := group_name(pod)) is not None:
                self._labelled.setdefault(name, []).append(pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Explains pods by what the gateway knows."""

    log: DecisionLog
    arrays: KeptArrays
    state: ClusterState
    pod_of: PodOf
    events_of: EventsOf
    bind_of: BindOf
    is_outdated: IsOutdated
    policy: PolicyHolder
    waiting: Mapping[str, Waiting]
    surveyor: Surveyor

    async def of_pod(
        self, namespace: str, name: str, asked: AskedOfPod, may_read: MayRead
    ) -> Explanation | str:
        """Return why a pod is where it is, or what is not there.

        If the API server does not show the pod, there are just the attempts.

        Args:
            namespace: The pod's namespace.
            name: Its name.
            asked: What the caller asks, and has read.
            may_read: Whether the caller may see pods of a namespace.
        """
        node, pod = asked.node, await self.pod_of(namespace, name)
        attempts = self.log.attempts(namespace, name)
        if not pod and not attempts:
            what = "pod" if pod is not None else "decision about pod"
            return f"there is no {what} {namespace}/{name}"
        uid = pod["metadata"]["uid"] if pod else attempts[0].uid
        there = self.surveyor.node_of(node) if node else ""
        of_pod = [each for each in attempts if each.uid == uid] if node else []
        views = [view(each, there or node, self.arrays.get(each.id)) for each in of_pod]
        if node and not there and all(each.verdict == "unknown" for each in views):
            # Thousands of names take tens of milliseconds, in which cycles go on.
            near = await asyncio.to_thread(suggestion, node, list(self.state.rows.of))
            return f"there is no node {node}{near}"
        shown, fellows = pod or _as_decided(attempts[0]), _Fellows(self.state)
        holders = await self._holders(may_read)
        known = self._known(shown, uid, holders, attempts)  # as some may have gone by now
        known.is_gone = not pod
        known.events = () if pod is None else await self.events_of(shown)
        preemptor = self.state.pods.get(preemptor_of(known.events or ()))
        if preemptor is not None and await may_read(preemptor.namespace):
            known.preemptor = f"{preemptor.namespace}/{preemptor.name}"
        seen, claims = self.state.pods.get(uid), claims_of(shown)
        known.missing = [each for each in asked.missing.split(",") if each in claims]
        known.has_claims = bool(claims) and set(claims) <= set(asked.claims.split(","))
        if known.has_claims and known.why_no_attempt.startswith(CLAIMS_UNREAD):
            known.why_no_attempt = UNTRIED
        if node:
            known.node, known.views = there or node, views
            known.lacks = self.surveyor.lacks(seen, there) if seen is not None else ()
        known.group = await fellows.group(seen, asked.needed)
        await self._survey(seen, known, fellows)
        known.attempts = await without_sources(known.attempts, may_read)
        requests = requests_of(self.state, self.waiting)
        known.capacity = capacity_sentence(requests.get(uid), known.events)
        found = explain(known)
        if pod is None:  # the API server does not answer
            newest = found.attempts[0].reason
            found = replace(found, place="was last seen by the gateway", reason=newest)
        return found

    async def listing(self, may_read: MayRead) -> Callable[[Pod], Awaitable[Explanation | None]]:
        """Return what explains one waiting pod after another, for a list that a caller gets."""
        holders = await self._holders(may_read)
        fellows, surveyed = _Fellows(self.state), dict[int, Survey]()
        requests = requests_of(self.state, self.waiting)

        async def explained(pod: Pod) -> Explanation | None:
            if (waiting := self.waiting.get(pod.uid)) is None:
                return None
            attempts = self.log.attempts(pod.namespace, pod.name)
            known = self._known(as_shown(pod, waiting), pod.uid, holders, attempts)
            if len(surveyed) < MOST_SURVEYED:
                await self._survey(pod, known, fellows)
                if known.survey is not None:
                    surveyed[id(known.survey)] = known.survey  # kept, so that no other gets its id
            known.missing, known.group = waiting.claims, await fellows.group(pod)
            known.capacity = capacity_sentence(requests.get(pod.uid))
            return replace(explain(known), attempts=())

        return explained

    def placed(self, pod: Pod) -> Explanation:
        """Return where a pod is that has a node, and why, for a list."""
        attempts = self.log.attempts(pod.namespace, pod.name)
        known = self._known(as_shown(pod, Waiting()), pod.uid, (), attempts)
        return replace(explain(known), attempts=())

    def shown(self, attempts: Sequence[Decision], place: str) -> list[Decision]:
        """Return attempts on a pod, newest first, as people see them; *place* is its node."""
        # Only the newest attempt can have led to where the pod is.
        places = [place, *("" for _ in attempts[1:])][: len(attempts)]
        return [self._shown(each, place) for each, place in zip(attempts, places, strict=True)]

    def _shown(self, decision: Decision, place: str) -> Decision:
        why = sentences(decision, place, self.arrays.totals_of(decision.id))
        score = decision.score
        bound = decision.bind.node if decision.bind else place
        if score is not None and bound and all(each.node != bound for each in score.top):
            of_place = view(decision, bound, self.arrays.get(decision.id)).score
            score = replace(score, top=[*score.top, of_place]) if of_place else score
        return replace(
            decision,
            filter=self._with_versions(decision.filter),
            score=self._with_versions(score),
            preempt=self._with_versions(decision.preempt),
            outcome=facts(decision).at(place).outcome,
            reason=next(iter(why), ""),
            why=why,
        )

    def _with_versions(self, phase: PhaseT) -> PhaseT:
        versions = self.policy.versions.of(phase.version) if phase is not None else {}
        if phase is None or not versions:
            return phase
        plugins = [replace(each, version=versions.get(each.plugin, "")) for each in phase.plugins]
        return replace(phase, plugins=plugins)

    def _known(
        self, pod: Object, uid: str, holders: Sequence[Holder], attempts: Sequence[Decision]
    ) -> PodEvidence:
        """Return what is known about a pod, with those *attempts* that are on this very pod."""
        policy, attempts = self.policy, [each for each in attempts if each.uid == uid]
        place = pod["spec"].get("nodeName") or self.state.bound_to(uid)
        meant = place or (pod.get("status") or {}).get("nominatedNodeName") or ""
        return PodEvidence(
            pod=pod,
            attempts=self.shown(attempts, place),
            why_no_attempt="" if attempts else why_no_attempt(pod, policy.profiles),
            revision=policy.revision,
            lost_node="" if meant in self.state.rows.of else meant,
            bind=self.bind_of(uid),
            is_outdated=self.is_outdated(uid),
            holders=() if place else [each for each in holders if each.uid != uid],
        )

    async def _survey(self, pod: Pod | None, known: PodEvidence, fellows: _Fellows) -> None:
        """Look up what the nodes lack for a pod that no node suits, and its gated fellows."""
        is_rejected = known.scheduled.get("reason") == "Unschedulable"
        if pod is None or pod.spec.node_name or not is_rejected:
            return
        known.survey = await self.surveyor.survey(pod)
        known.rejecting = self._rejecting(known.survey, known)
        trial = known.filtered.group if known.filtered is not None else None
        if trial is not None and trial.members < trial.min_count:
            others = await fellows.labelled(pod)
            gated = (each for each in others if each.spec.scheduling_gates)
            known.gated = sorted(f"{each.namespace}/{each.name}" for each in gated)
            known.existing = len(others)

    def _rejecting(self, survey: Survey, known: PodEvidence) -> Mapping[str, str]:
        suiting = survey.by_obstacles.get((), ())
        arrays = self.arrays.get(known.filtered.id) if known.filtered is not None else None
        if arrays is None or arrays.verdicts is None or len(suiting) > MOST_ASKED_ABOUT:
            return {}
        found = {}
        for name in suiting:
            row = arrays.row_of(name)
            verdict = arrays.verdicts.on(row) if row is not None else None
            if verdict is not None and verdict != "feasible":
                found[name] = verdict.plugin
        return found

    async def _holders(self, may_read: MayRead) -> Sequence[Holder]:
        """Return which pods that the caller may read hold nodes; see `PodEvidence.holders`."""
        found = []
        for pod in self.state.held()[-MOST_HOLDERS:]:
            attempts = self.log.of_pod(pod.namespace, pod.name)
            claim = attempts[0].decision.claim if attempts else None
            if claim and await may_read(pod.namespace):
                name = f"{pod.namespace}/{pod.name}"
                found.append(Holder(name, pod.uid, pod.spec.node_name, claim.plugins))
        return found


def as_shown(pod: Pod, waiting: Waiting) -> Object:
    """Return a pod as the API shows it, as far as an explanation needs it."""
    metadata, spec = pod.metadata, pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": waiting.reason,
        "message": waiting.message,
        "lastTransitionTime": waiting.since,
    }
    return {
        "metadata": {
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "creationTimestamp": metadata.creation_timestamp,
            "deletionTimestamp": metadata.deletion_timestamp,
        },
        "spec": {
            "nodeName": spec.node_name,
            "schedulerName": spec.scheduler_name,
            "nodeSelector": spec.node_selector,
            "affinity": {"nodeAffinity": msgspec.to_builtins(affinity)} if affinity else {},
            "schedulingGroup": bool(spec.scheduling_group),
            "schedulingGates": [{"name": gate.name} for gate in spec.scheduling_gates],
            "resourceClaims": [{"resourceClaimName": name} for name in waiting.named],
        },
        "status": {
            "nominatedNodeName": pod.status.nominated_node_name,
            "conditions": [condition] if waiting.reason else [],
        },
    }


def _as_decided(decision: Decision) -> Object:
    """Return what a decision still shows of a pod that exists no more."""
    metadata = {"namespace": decision.namespace, "name": decision.pod, "uid": decision.uid}
    return {"metadata": metadata, "spec": {}}


async def without_sources(attempts: Sequence[Decision], may_read: MayRead) -> list[Decision]:
    """Leave out for which equal pod an answer was cached, if the caller may not read that one."""
    found = []
    for attempt in attempts:
        for name in ("filter", "score", "preempt"):
            phase = getattr(attempt, name)
            if phase is None or not phase.cached_from:
                continue
            if not await may_read(phase.cached_from.partition("/")[0]):
                attempt = replace(attempt, **{name: replace(phase, cached_from="")})
        found.append(attempt)
    return found
