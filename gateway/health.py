"""What `/readyz` of the gateway checks, and what it notes although the gateway is ready."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from gateway.cluster.cluster import Cluster
from gateway.leadership.barriers import Barriers
from gateway.leadership.term import Term
from gateway.policy.policy import PolicyHolder
from gateway.policy.reload import PolicyReloader
from gateway.replicas.pool import ReplicaPool
from moorage_host.process.admin import Check


def readiness_checks(
    *,
    cluster: Cluster,
    policy: PolicyHolder,
    filters: ReplicaPool,
    scorers: ReplicaPool,
    term: Term,
    max_cache_age: float,
    max_interruption: float,
) -> Mapping[str, Check]:
    """Return what must hold before kube-scheduler's calls are worth sending here, by name.

    Args:
        cluster: What follows the API server.
        policy: Must be resolved against the replicas' plugins.
        filters: At least one must be usable.
        scorers: Once the first is connected it must have the state. None is needed: without scores
            pods are still placed.
        term: Must have begun.
        max_cache_age: Seconds for which the API server may be silent.
        max_interruption: Seconds for which nodes or pods may not be followed.
    """

    def cache() -> str | None:
        if not cluster.synced():
            return "nodes and pods have not been read yet"
        for name, (seconds, problem) in cluster.interruptions().items():
            if seconds > max_interruption:
                return f"{name} have not been followed for {seconds:.0f} s: {problem}"
        age = cluster.age()
        return f"the API server is silent for {age:.0f} s" if age > max_cache_age else None

    def objects() -> str | None:
        return "; ".join(cluster.kinds.problems(max_cache_age)) or None

    return {
        "cache": cache,
        "objects": objects,
        "leader": lambda: term.problem or None,
        "policy": lambda: policy.problem or None,
        "filter": lambda: None if filters.ready else filters.problem,
        "scorer": lambda: scorers.problem if scorers.is_filling else None,
    }


def readiness_notes(
    reloader: PolicyReloader | None,
    background_problems: Sequence[Callable[[], Iterable[str]]],
    barriers: Barriers,
) -> Mapping[str, Check]:
    """Return what is noted about a gateway that may be ready, by name.

    Each of *background_problems* returns what fails in the background of some plugins; *barriers*
    know the binders that were left out.
    """

    def policy() -> str | None:
        problem = reloader.problem if reloader else ""
        if not problem:
            return None
        return f"the file is refused and the policy before it stays active: {problem}"

    def plugins() -> str | None:
        return "; ".join(each for some in background_problems for each in some()) or None

    def binders() -> str | None:
        left_out = (f"{address}: {why}" for address, why in barriers.left_out.items())
        problems = "; ".join(left_out)
        return f"left out of the barrier until they answer: {problems}" if problems else None

    return {"policy": policy, "plugins": plugins, "binder": binders}
