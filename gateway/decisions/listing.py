"""The pages of decisions, newest first, and of the pods that have no node, as the watch shows them.

Nothing is asked of the API server, so the lists are at hand however many pods wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import Decision, DecisionItem
from gateway.decisions.capacity import is_placeholder
from gateway.decisions.log import Attempt, DecisionLog
from gateway.decisions.nodes import KeptArrays
from gateway.decisions.query import BadQueryError, DecisionQuery
from gateway.decisions.sentences import Facts, facts, reason, runner_up
from gateway.decisions.stream import MayRead
from moorage.models import Pod

SLICE = 100
"""Attempts that are looked at before cycles get their turn: the first look takes 20 us for each."""

PlaceOf = Callable[[str], str]
"""Returns the node that the pod with a uid is bound to as the cluster shows it, "" for none."""


class Listing:
    """Lists the decisions of a log."""

    def __init__(self, log: DecisionLog, arrays: KeptArrays, place_of: PlaceOf) -> None:
        """Look up in *place_of* where pods are that Moorage does not bind."""
        self._log = log
        self._arrays = arrays
        self._place_of = place_of

    async def page(self, query: DecisionQuery, may_read: MayRead) -> tuple[list[DecisionItem], str]:
        """Return decisions, and where the list goes on, "" at its end.

        Raises:
            BadQueryError: The list cannot go on where the query says.
        """
        items: list[DecisionItem] = []
        readable: dict[str, bool] = {}
        async for attempt, found in self._matching(query):
            if attempt.namespace not in readable:
                readable[attempt.namespace] = await may_read(attempt.namespace)
            if not readable[attempt.namespace]:
                continue
            if len(items) == query.limit:
                return items, items[-1].id
            items.append(self._item(attempt.decision, found, self._place(attempt)))
        return items, ""

    def item(self, decision: Decision) -> DecisionItem:
        """Return a decision as lists show it."""
        place = self._place_of(decision.uid)
        return self._item(decision, facts(decision).at(place), place)

    async def _matching(self, query: DecisionQuery) -> AsyncIterator[tuple[Attempt, Facts]]:
        for count, attempt in enumerate(self._candidates(query), start=1):
            if count % SLICE == 0:
                await asyncio.sleep(0)
            if query.may_match(attempt):
                found = attempt.facts
                if found.outcome == "binding":
                    found = found.at(self._place(attempt))
                if query.matches(found):
                    yield attempt, found

    def _candidates(self, query: DecisionQuery) -> list[Attempt]:
        if query.namespace and query.pod:
            attempts = list(self._log.of_pod(query.namespace, query.pod))
        else:
            attempts = self._log.all()
        if query.id:
            wanted = self._log.number_of(query.id)
            attempts = [attempt for attempt in attempts if attempt.number == wanted]
        if not query.after:
            return attempts
        number = self._log.number_of(query.after)
        if number is None:
            raise BadQueryError(
                "continue is not from this gateway, or it has restarted since: begin again without"
            )
        return [attempt for attempt in attempts if attempt.number < number]

    def _place(self, attempt: Attempt) -> str:
        """Return where the pod is, if it can be there by this attempt: only by the latest."""
        return self._place_of(attempt.uid) if self._log.is_latest(attempt) else ""

    def _item(self, decision: Decision, found: Facts, place: str) -> DecisionItem:
        phase = decision.filter or decision.preempt
        return DecisionItem(
            id=decision.id,
            namespace=decision.namespace,
            pod=decision.pod,
            uid=decision.uid,
            time=decision.time,
            profile=decision.profile,
            outcome=found.outcome,
            node=found.node,
            runner_up=runner_up(decision, found.node),
            reason=reason(decision, place, self._arrays.totals_of(decision.id)),
            plugins=found.plugins,
            nodes=phase.nodes if phase else 0,
            feasible=phase.feasible if phase else 0,
            cluster_nodes=decision.cluster_nodes,
            seconds=decision.seconds,
            attempt=decision.attempt,
            previous=decision.previous,
        )


COMPARED_AT_ONCE = 2000
"""Names that are compared before cycles get their turn; each takes about 1 us."""


async def oldest_first(
    state: ClusterState, waiting: Mapping[str, Waiting], namespace: str
) -> Sequence[Pod]:
    """Return the pods without a node, of one namespace or, for "", of all."""
    known = filter(None, map(state.pods.get, waiting))
    pods = [each for each in known if namespace in ("", each.namespace)]
    pods = [each for each in pods if not is_placeholder(each)]
    # Texts are compared fast; the rest goes on beside cycles.
    return await asyncio.to_thread(
        sorted, pods, key=lambda each: f"{each.metadata.creation_timestamp} {each.name}"
    )


def matches(words: Sequence[str], pod: Pod, *more: str) -> bool:
    """Whether a pod's name, or something *more* about it, has all of the lower-case *words*."""
    text = " ".join((f"{pod.namespace}/{pod.name}", *more)).lower()
    return all(word in text for word in words)


async def with_a_node(state: ClusterState, words: Sequence[str]) -> AsyncIterator[Pod]:
    """Yield pods on nodes whose names match, not all at once: cycles go on."""
    for count, uid in enumerate(state.known_pods(), start=1):
        pod = state.pods.get(uid)
        if pod is not None and pod.spec.node_name and matches(words, pod):
            yield pod
        if count % COMPARED_AT_ONCE == 0:
            await asyncio.sleep(0)
