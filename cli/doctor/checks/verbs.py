"""Checks the verbs and resources of extenders against the plugins of the active policy."""

from collections.abc import Mapping, Sequence

from cli.config.entries import VERBS, ExtenderEntry, Verb, entries_for
from cli.doctor.check import Check, Result, listed, ok, problem, warning, worst
from cli.doctor.installation.installation import Entry, Installation
from cli.doctor.installation.known import NotReadError, known
from moorage_host.policy import KINDS, Kind, PluginInfo
from sandbox.scheduler.config import ExtenderConfig

PRINT = "print the entry again: moorage config extender POLICY"


def verbs(installation: Installation) -> Result:
    """Compare the verbs with those that `moorage config extender` would print."""
    wanted = _union(_planned(installation))
    results = []
    for scheduler, _ in installation.configurations:
        entries = [each for each in installation.entries if each.scheduler is scheduler]
        offered = {verb for entry in entries for verb in VERBS if _verb(entry.extender, verb)}
        for verb in VERBS:
            if verb in wanted and verb not in offered:
                results.append(
                    problem(
                        f"{scheduler.source} has no {verb}Verb, which is needed for "
                        f"{listed(wanted[verb])}",
                        f"add it and restart kube-scheduler; {PRINT}",
                    )
                )
            elif verb in offered and verb not in wanted:
                results.append(
                    warning(
                        f"{scheduler.source} has a {verb}Verb that no enabled plugin needs: each "
                        "call costs time",
                        f"leave it out; {PRINT}",
                    )
                )
    return worst(results, ok(f"the verbs are those that the policy needs: {listed(list(wanted))}"))


def ignorable(installation: Installation) -> Result:
    """Look what happens to pods while Moorage is down."""
    results = []
    for entry in installation.entries:
        if not entry.extender.ignorable:
            continue
        if entry.extender.bind_verb and "bind" in _union(_planned(installation, ignorable=True)):
            results.append(
                problem(
                    f"{entry.place} has bindVerb and is ignorable: a bind that a plugin refuses is "
                    "done by kube-scheduler instead",
                    f"give binds an entry of their own that is not ignorable; {PRINT} --ignorable",
                )
            )
        elif not _places_our_pods(installation, entry):
            results.append(
                warning(
                    f"{entry.place} is ignorable: while Moorage is down, pods are placed without "
                    "its rules",
                    "set ignorable: false if its filters must always hold",
                )
            )
    if any(entry.extender.ignorable for entry in installation.entries):
        evidence = "the extender is ignorable, as Moorage's own pods need it that it asks about"
        return worst(results, ok(evidence))
    return worst(results, ok("no extender is ignorable: while Moorage is down, pods wait"))


def _places_our_pods(installation: Installation, entry: Entry) -> bool:
    """Whether an extender is asked about Moorage's own pods, which must start without it."""
    configuration = known(entry.scheduler.configuration)
    names = {
        each["spec"]["template"]["spec"].get("schedulerName", "default-scheduler")
        for each in installation.objects.of("deployments")
    }
    return bool(names & set(configuration.scheduler_names))


def bind_once(installation: Installation) -> Result:
    """Look whether one extender binds, of those that kube-scheduler has."""
    results, seen = [], 0
    for scheduler, configuration in installation.configurations:
        binding = [each for each in configuration.extenders if each.bind_verb]
        ours = {id(entry.extender) for entry in installation.entries}
        seen += len(binding)
        wanted = "bind" in _union(_planned(installation))
        if wanted and binding and id(binding[0]) not in ours:
            results.append(
                problem(
                    f"{scheduler.source}: {binding[0].url_prefix} binds, which is not Moorage; "
                    "kube-scheduler allows one",
                    "give Moorage the bindVerb, or disable the plugins that need it",
                )
            )
    return worst(
        results, ok("one extender binds" if seen else "kube-scheduler binds, no plugin needs more")
    )


def resources(installation: Installation) -> Result:
    """Compare managedResources with what plugins declare."""
    planned = _planned(installation)
    unknown = [
        each.name
        for each in installation.policy.plugins
        if each.name not in installation.managed_resources and not each.only_shadow
    ]
    if unknown:
        raise NotReadError(
            f"plugins are not known here: {listed(unknown)}; give each with --plugin PATH"
        )
    results = []
    wanted = {name for entry in planned for name in entry.resources}
    is_limited = all(entry.resources for entry in planned)
    for entry in installation.entries:
        given = {each.name for each in entry.extender.managed_resources}
        if given and not is_limited:
            results.append(
                problem(
                    f"{entry.place}: managedResources {listed(sorted(given))} keep other pods from "
                    "Moorage, and enabled plugins concern all pods",
                    f"remove managedResources; {PRINT}",
                )
            )
        elif given and not wanted <= given:
            results.append(
                problem(
                    f"{entry.place}: managedResources lack {listed(sorted(wanted - given))}: pods "
                    "with it alone never come to Moorage",
                    f"add it; {PRINT}",
                )
            )
        elif is_limited and wanted and not given:
            results.append(
                warning(
                    f"{entry.place} has no managedResources, and all plugins concern "
                    f"{listed(sorted(wanted))} only: other pods come to Moorage for nothing",
                    PRINT,
                )
            )
    return worst(results, ok("managedResources let all pods through that plugins concern"))


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
        name="config-bind",
        about="If a plugin needs Moorage to bind, no other extender does.",
        run=bind_once,
    ),
    Check(
        name="config-resources",
        about="managedResources let all pods through that enabled plugins concern.",
        run=resources,
    ),
)
