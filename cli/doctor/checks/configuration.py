"""Checks kube-scheduler's configuration against the policy and the gateway."""

from collections.abc import Iterator, Mapping, Sequence

from cli.config.extender import (
    IN_TREE_SUM,
    POINTS,
    VERBS,
    ExtenderEntry,
    Verb,
    entries_for,
    extender_weight,
)
from cli.doctor.check import Check, Result, listed, ok, problem, warning
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.objects import NotReadError, known
from moorage_host.policy import KINDS, Kind, PluginInfo
from sandbox.scheduler.config import ExtenderConfig

SAMPLED_FROM = 100
"""Nodes from which kube-scheduler looks at a sample, unless its configuration has another share."""

ALL = 100

PRINT = "print the entry again: moorage config extender POLICY"


def settings(installation: Installation) -> Iterator[Result]:
    """Look at nodeCacheCapable, the sample, the time limit and the weight."""
    for entry in installation.entries:
        extender = entry.extender
        asks_about_nodes = extender.filter_verb or extender.prioritize_verb
        if not extender.node_cache_capable and asks_about_nodes:
            yield warning(
                f"{entry.place}: nodeCacheCapable is false: whole nodes are sent, and "
                "kube-scheduler 1.33 and later then scores every node as empty "
                "(kubernetes/kubernetes#141781)",
                "set nodeCacheCapable: true",
            )
        yield from _timeout(entry, installation.own.http_timeout)
        if extender.prioritize_verb:
            yield from _weight(entry, installation.policy.score_scale)
    for scheduler, configuration in installation.configurations:
        for profile in configuration.profiles:
            share = profile.percentage_of_nodes_to_score
            share = configuration.percentage_of_nodes_to_score if share is None else share
            if share < ALL:
                shown = f"percentageOfNodesToScore is {share or 'not set'}"
                yield warning(
                    f"{scheduler.source}, profile {profile.scheduler_name}: {shown}: from "
                    f"{SAMPLED_FROM} nodes up Moorage sees a sample, and a pod may wait although a "
                    "node outside of it suits",
                    "set percentageOfNodesToScore: 100, unless the time that it costs with "
                    "thousands of nodes matters more",
                )
    yield ok("nodeCacheCapable, percentageOfNodesToScore, httpTimeout and weight fit")


def _timeout(entry: Entry, own: float) -> Iterator[Result]:
    theirs = entry.extender.timeout
    if theirs is None:
        yield problem(
            f"{entry.place}: httpTimeout {entry.extender.http_timeout} is negative: a call without "
            "an answer stops all scheduling",
            f"set httpTimeout: {own:g}s",
        )
    elif theirs != own:
        found = problem if theirs < own else warning
        effect = (
            "kube-scheduler gives up before the gateway answers"
            if theirs < own
            else "the gateway gives up earlier than it has to"
        )
        yield found(
            f"{entry.place}: httpTimeout is {theirs:g} s, the gateway's --http-timeout {own:g} s: "
            f"{effect}",
            f"start the gateway with --http-timeout={theirs:g}s",
        )


def _weight(entry: Entry, scale: int) -> Iterator[Result]:
    given, expected = entry.extender.weight, extender_weight(scale)
    if given < expected:
        yield warning(
            f"{entry.place}: weight {given} with scoreScale {scale} is at most "
            f"{given * POINTS * scale:,} beside {IN_TREE_SUM:,} of kube-scheduler's own: a lead of "
            "a tenth may lose",
            f"set weight: {expected}, unless in-tree scores are meant to decide",
        )


def verbs(installation: Installation) -> Iterator[Result]:
    """Compare the verbs with those that `moorage config extender` would print."""
    wanted = _union(_planned(installation))
    for scheduler, configuration in installation.configurations:
        entries = [each for each in installation.entries if each.scheduler is scheduler]
        offered = {verb for entry in entries for verb in VERBS if _verb(entry.extender, verb)}
        binding = next((each for each in configuration.extenders if each.bind_verb), None)
        for verb in VERBS:
            if verb in wanted and verb not in offered:
                other = binding.url_prefix if verb == "bind" and binding is not None else ""
                yield problem(
                    f"{scheduler.source} has no {verb}Verb, which is needed for "
                    f"{listed(wanted[verb])}"
                    + (f"; {other} binds, and kube-scheduler allows one" if other else ""),
                    f"add it and restart kube-scheduler; {PRINT}",
                )
            elif verb in offered and verb not in wanted:
                yield warning(
                    f"{scheduler.source} has a {verb}Verb that no enabled plugin needs: each call "
                    "costs time",
                    f"leave it out; {PRINT}",
                )
    yield ok(f"the verbs are those that the policy needs: {listed(list(wanted))}")


def ignorable(installation: Installation) -> Iterator[Result]:
    """Look what happens to pods while Moorage is down."""
    for entry in installation.entries:
        if not entry.extender.ignorable:
            continue
        if entry.extender.bind_verb and "bind" in _union(_planned(installation, ignorable=True)):
            yield problem(
                f"{entry.place} has bindVerb and is ignorable: a bind that a plugin refuses is "
                "done by kube-scheduler instead",
                f"give binds an entry of their own that is not ignorable; {PRINT} --ignorable",
            )
        elif not _places_our_pods(installation, entry):
            yield warning(
                f"{entry.place} is ignorable: while Moorage is down, pods are placed without its "
                "rules",
                "set ignorable: false if its filters must always hold",
            )
    if any(entry.extender.ignorable for entry in installation.entries):
        yield ok("the extender is ignorable, as Moorage's own pods need it that it asks about")
    yield ok("no extender is ignorable: while Moorage is down, pods wait")


def _places_our_pods(installation: Installation, entry: Entry) -> bool:
    """Whether an extender is asked about Moorage's own pods, which must start without it."""
    configuration = known(entry.scheduler.configuration)
    names = {
        each["spec"]["template"]["spec"].get("schedulerName", "default-scheduler")
        for each in installation.objects.of("deployments")
    }
    return bool(names & set(configuration.scheduler_names))


def resources(installation: Installation) -> Iterator[Result]:
    """Compare managedResources with what plugins declare."""
    planned = _planned(installation)
    strange = [
        each.name
        for each in installation.policy.plugins
        if each.name not in installation.managed_resources and not each.only_shadow
    ]
    if strange:
        raise NotReadError(
            f"plugins are not known here: {listed(strange)}; give each with --plugin PATH"
        )
    wanted = {name for entry in planned for name in entry.resources}
    is_limited = all(entry.resources for entry in planned)
    for entry in installation.entries:
        given = {each.name for each in entry.extender.managed_resources}
        if given and not is_limited:
            yield problem(
                f"{entry.place}: managedResources {listed(sorted(given))} keep other pods from "
                "Moorage, and enabled plugins concern all pods",
                f"remove managedResources; {PRINT}",
            )
        elif given and not wanted <= given:
            yield problem(
                f"{entry.place}: managedResources lack {listed(sorted(wanted - given))}: pods with "
                "it alone never come to Moorage",
                f"add it; {PRINT}",
            )
        elif is_limited and wanted and not given:
            yield warning(
                f"{entry.place} has no managedResources, and all plugins concern "
                f"{listed(sorted(wanted))} only: other pods come to Moorage for nothing",
                PRINT,
            )
    yield ok("managedResources let all pods through that plugins concern")


def _planned(installation: Installation, *, ignorable: bool = False) -> Sequence[ExtenderEntry]:
    """Return the entries that the active policy needs."""
    plugins: dict[Kind, list[PluginInfo]] = {kind: [] for kind in KINDS}
    for each in installation.policy.plugins:
        for kind in KINDS:
            if each.kind == kind and not each.only_shadow:
                managed = installation.managed_resources.get(each.name, ())
                plugins[kind].append(each.info(managed))
    return entries_for(plugins, ignorable=ignorable)


def _union(entries: Sequence[ExtenderEntry]) -> Mapping[Verb, Sequence[str]]:
    return {verb: plugins for entry in entries for verb, plugins in entry.verbs.items()}


def _verb(extender: ExtenderConfig, verb: Verb) -> str:
    offered: Mapping[Verb, str] = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    return offered[verb]


CHECKS = (
    Check(
        name="config-settings",
        about="kube-scheduler sends names of all nodes, waits as long as the gateway, and has a "
        "weight that fits the policy's scoreScale: a lead of a tenth beats all in-tree scores.",
        run=settings,
    ),
    Check(
        name="config-verbs",
        about="The verbs are those that `moorage config extender` prints for the active policy.",
        run=verbs,
    ),
    Check(
        name="config-ignorable",
        about="While Moorage is down pods wait; binds are never ignorable.",
        run=ignorable,
    ),
    Check(
        name="config-resources",
        about="managedResources let all pods through that enabled plugins concern.",
        run=resources,
    ),
)
