"""Checks kube-scheduler's configuration against the policy and the gateway."""

from cli.config.extender import IN_TREE_SUM, POINTS, extender_weight
from cli.doctor.check import Check, Result, listed, ok, problem, warning, worst
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing

SAMPLED_FROM = 100
"""Nodes from which kube-scheduler looks at a sample, unless its configuration has another share."""

ALL = 100


def valid(installation: Installation) -> Result:
    """Look whether kube-scheduler would start with its configuration."""
    broken = [
        problem(f"{each.source}: {each.configuration.reason}", "correct it and restart it")
        for each in installation.schedulers
        if isinstance(each.configuration, Missing) and "not start" in each.configuration.reason
    ]
    if broken:
        return worst(broken, broken[0])
    return ok(f"{listed([each.source for each, _ in installation.configurations])} is valid")


def node_cache(installation: Installation) -> Result:
    """Look whether names instead of whole nodes are sent."""
    results = [
        warning(
            f"{entry.place}: nodeCacheCapable is false: whole nodes are sent, and kube-scheduler "
            "1.33 and later then scores every node as empty (kubernetes/kubernetes#141781)",
            "set nodeCacheCapable: true",
        )
        for entry in installation.entries
        if not entry.extender.node_cache_capable
        and (entry.extender.filter_verb or entry.extender.prioritize_verb)
    ]
    return worst(results, ok("nodeCacheCapable is true: names are sent, not whole nodes"))


def sampling(installation: Installation) -> Result:
    """Look whether kube-scheduler looks at all nodes."""
    results = []
    for scheduler, configuration in installation.configurations:
        for profile in configuration.profiles:
            share = profile.percentage_of_nodes_to_score
            share = configuration.percentage_of_nodes_to_score if share is None else share
            if share < ALL:
                shown = f"percentageOfNodesToScore is {share or 'not set'}"
                results.append(
                    warning(
                        f"{scheduler.source}, profile {profile.scheduler_name}: {shown}: from "
                        f"{SAMPLED_FROM} nodes up Moorage sees a sample, and a pod may wait "
                        "although a node outside of it suits",
                        "set percentageOfNodesToScore: 100, unless the time that it costs with "
                        "thousands of nodes matters more",
                    )
                )
    return worst(results, ok("percentageOfNodesToScore is 100: every pod gets all nodes"))


def timeout(installation: Installation) -> Result:
    """Compare httpTimeout with the gateway's."""
    own = installation.own.http_timeout
    results = []
    for entry in installation.entries:
        theirs = entry.extender.timeout
        if theirs is None:
            results.append(
                problem(
                    f"{entry.place}: httpTimeout {entry.extender.http_timeout} is negative: a call "
                    "without an answer stops all scheduling",
                    f"set httpTimeout: {own:g}s",
                )
            )
        elif theirs < own:
            results.append(
                problem(
                    f"{entry.place}: httpTimeout is {theirs:g} s, the gateway's --http-timeout "
                    f"{own:g} s: kube-scheduler gives up before the gateway answers",
                    f"start the gateway with --http-timeout={theirs:g}s",
                )
            )
        elif theirs > own:
            results.append(
                warning(
                    f"{entry.place}: httpTimeout is {theirs:g} s, the gateway's --http-timeout "
                    f"{own:g} s: the gateway gives up earlier than it has to",
                    f"start the gateway with --http-timeout={theirs:g}s",
                )
            )
    return worst(results, ok(f"httpTimeout and the gateway's --http-timeout are {own:g} s"))


def weight(installation: Installation) -> Result:
    """Compare the weight with the policy's scoreScale."""
    scale = installation.policy.score_scale
    expected = extender_weight(scale)
    results, seen = [], []
    for entry in installation.entries:
        if not entry.extender.prioritize_verb:
            continue
        given = entry.extender.weight
        most = given * POINTS * scale
        seen.append(f"{given} with scoreScale {scale} is at most {most:,}")
        if given < expected:
            results.append(
                warning(
                    f"{entry.place}: weight {given} with scoreScale {scale} is at most {most:,} "
                    f"beside {IN_TREE_SUM:,} of kube-scheduler's own: a lead of a tenth may lose",
                    f"set weight: {expected}, unless in-tree scores are meant to decide",
                )
            )
    if not seen:
        return ok("no extender has a prioritizeVerb, so no weight counts")
    return worst(results, ok(f"weight {listed(seen)} beside {IN_TREE_SUM:,} of the in-tree scores"))


CHECKS = (
    Check(name="config-valid", about="kube-scheduler starts with its configuration.", run=valid),
    Check(
        name="config-node-cache",
        about="nodeCacheCapable is true: names are sent instead of whole nodes.",
        run=node_cache,
    ),
    Check(
        name="config-sampling",
        about="percentageOfNodesToScore is 100: Moorage sees all nodes, not a sample.",
        run=sampling,
    ),
    Check(
        name="config-timeout",
        about="httpTimeout and the gateway's --http-timeout are equal.",
        run=timeout,
    ),
    Check(
        name="config-weight",
        about="The weight fits the policy's scoreScale: a lead of a tenth beats all in-tree "
        "scores.",
        run=weight,
    ),
)
