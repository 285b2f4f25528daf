"""Checks each extender entry against the one that the active policy needs, and profiles."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from cli.config.extender import (
    IN_TREE_SUM,
    POINTS,
    ExtenderEntry,
    entries_for,
    extender_weight,
    tls_fields,
)
from cli.doctor.check import Finding, Level, listed, problem, warning
from cli.doctor.installation.installation import FoundExtender, Installation
from cli.doctor.installation.objects import known
from cli.shared.gateway.pods import Object
from moorage.errors import suggestion
from moorage_host.kube_scheduler import DEFAULT_NAME, VERBS, ExtenderConfig, ExtenderTLS, Verb
from moorage_host.policy import KINDS, PluginInfo

ALL = 100

PRINT = "print the entry again: moorage config extender POLICY"

LOOPBACK = ("127.", "localhost", "::1")

LONGEST_CALL = 60.0
"""Seconds for which nobody would let one call stop all scheduling."""

AUTHORITY_KEY = "ca.key"
"""What `moorage certs`, openssl's guides and Kubernetes call the key of an authority."""

Row = tuple[Level, str, object, object, str]
"""How bad it is if a field has another value: the field, what it is, what is needed, the effect."""


def extender_entry(installation: Installation) -> Iterator[Finding]:
    """Each entry has the fields that `moorage config extender` prints for the active policy.

    kube-scheduler sends names of all nodes, waits as long as the gateway, verifies its certificate
    and presents one, has a weight with which a lead of a tenth beats all in-tree scores, and lets
    pods wait while Moorage is down.
    """
    rows: list[tuple[str, Row]] = []
    for entry in installation.entries:
        rows += ((entry.place, row) for row in _fields(installation, entry))
        rows += ((entry.place, row) for row in _tls(installation, entry.extender))
    for scheduler, configuration in installation.configurations:
        for profile in configuration.profiles:
            share = profile.percentage_of_nodes_to_score
            share = configuration.percentage_of_nodes_to_score if share is None else share
            effect = (
                "from 100 nodes up Moorage sees a sample, and a pod may wait although a node "
                "outside of it suits; 100 costs time with thousands of nodes"
            )
            place = f"{scheduler.source}, profile {profile.scheduler_name}"
            field = "percentageOfNodesToScore"
            rows.append((place, (Level.WARNING, field, share or "not set", ALL, effect)))
    for place, (level, field, found, wanted, effect) in rows:
        if found != wanted:
            evidence = f"{place}: {field} is {_shown(found)}: {effect}"
            change = f"set {field} to {_shown(wanted)}"
            yield Finding(level=level, evidence=evidence, change=change)


def _fields(installation: Installation, entry: FoundExtender) -> Iterator[Row]:
    """Yield the fields that are as the gateway and the policy need them."""
    extender, own = entry.extender, installation.replicas["gateway"]
    if extender.filter_verb or extender.prioritize_verb:
        effect = (
            "whole nodes are sent, and kube-scheduler 1.33 and later then scores every node as "
            "empty (kubernetes/kubernetes#141781)"
        )
        yield Level.WARNING, "nodeCacheCapable", extender.node_cache_capable, True, effect
    theirs, ours = extender.timeout, own["httpTimeout"]
    level, effect = Level.PROBLEM, "kube-scheduler gives up before the gateway answers"
    if theirs is None:
        effect = "a call without an answer stops all scheduling"
    elif theirs > LONGEST_CALL:
        effect = f"one call that hangs stops all scheduling for {theirs / 60:,.0f} minutes"
    elif theirs > ours:
        level, effect = Level.WARNING, "the gateway gives up earlier than it has to"
    found = extender.http_timeout if theirs is None else f"{theirs:g}s"
    effect += "; or change the gateway's --http-timeout"
    yield level, "httpTimeout", found, f"{ours:g}s", effect
    if extender.prioritize_verb:
        scale = installation.policy["scoreScale"]
        effect = (
            f"with scoreScale {scale} that is at most {extender.weight * POINTS * scale:,} beside "
            f"{IN_TREE_SUM:,} of kube-scheduler's own: a lead of a tenth may lose"
        )
        needed = max(extender.weight, extender_weight(scale))
        yield Level.WARNING, "weight", extender.weight, needed, effect
    ours_by = _schedulers_of_our_pods(installation, entry)
    if extender.bind_verb and "bind" in _union(_planned(installation, ignorable=True)):
        effect = "a bind that a plugin refuses is done by kube-scheduler instead"
        yield Level.PROBLEM, "ignorable", extender.ignorable, False, effect
        if ours_by and not (extender.ignorable or extender.managed_resources):
            effect = "they cannot start while Moorage is down, which binds them"
            field = "the schedulerName of Moorage's own pods"
            yield Level.PROBLEM, field, listed(ours_by), "one that does not ask Moorage", effect
    elif ours_by:
        effect = (
            "its profiles schedule Moorage's own pods, which cannot start while Moorage is down; "
            f"or set schedulerName: {DEFAULT_NAME} in their Deployments"
        )
        is_limited = bool(extender.managed_resources)
        yield Level.PROBLEM, "ignorable", extender.ignorable or is_limited, True, effect
    else:
        effect = "while Moorage is down, pods are placed without its rules"
        yield Level.WARNING, "ignorable", extender.ignorable, False, effect
    prefix = own["extenderPrefix"].rstrip("/")
    path = urlsplit(extender.url_prefix).path.rstrip("/")
    effect = "kube-scheduler gets 404; it is the gateway's --extender-prefix"
    yield Level.PROBLEM, "the path of urlPrefix", path, prefix, effect


def _tls(installation: Installation, extender: ExtenderConfig) -> Iterator[Row]:
    """Yield the fields with which both sides know each other."""
    url, tls = urlsplit(extender.url_prefix), extender.tls_config or ExtenderTLS()
    own = installation.replicas["gateway"]
    secured = installation.report.is_secured
    if url.scheme != "https":
        level = Level.PROBLEM if secured else Level.WARNING
        effect = (
            "plain text, and the gateway has certificates"
            if secured
            else "plain text: who reaches that port can have any pod bound; see `moorage certs`"
        )
        if secured or not str(url.hostname).startswith(LOOPBACK):
            yield level, "the scheme of urlPrefix", url.scheme, "https", effect
        return
    if not secured:
        effect = "kube-scheduler begins with TLS, and the gateway has no certificates"
        yield Level.PROBLEM, "the scheme of urlPrefix", url.scheme, "http", effect
    effect = "kube-scheduler believes any server"
    yield Level.PROBLEM, "tlsConfig.insecure", tls.insecure, False, effect
    wanted = tls_fields(extender.url_prefix)["tlsConfig"]
    assert isinstance(wanted, dict)  # noqa: S101 - it is an https URL
    if not tls.insecure:
        effect = "kube-scheduler verifies no certificate, or believes its image's authorities"
        yield Level.PROBLEM, *_file("caFile", tls.ca_file or tls.ca_data, wanted), effect
    if secured:
        effect = "kube-scheduler presents no certificate, and the gateway ends such connections"
        yield Level.PROBLEM, *_file("certFile", tls.cert_file or tls.cert_data, wanted), effect
        yield Level.PROBLEM, *_file("keyFile", tls.key_file or tls.key_data, wanted), effect
    if PurePosixPath(tls.key_file).name == AUTHORITY_KEY:
        effect = "that is the authority's key: who reads it there can pass for anybody"
        yield Level.PROBLEM, "tlsConfig.keyFile", tls.key_file, wanted["keyFile"], effect
    names, name = own["certificateNames"], tls.server_name or url.hostname
    if names and name not in names:
        effect = f"the gateway's certificate is for {listed(names)}"
        yield Level.PROBLEM, "tlsConfig.serverName", name, wanted["serverName"], effect


def _file(field: str, found: str, wanted: Mapping[str, str]) -> tuple[str, str, str]:
    """Return a row for a file, or the data in its stead: whatever is given is as wanted."""
    return f"tlsConfig.{field}", found, found or wanted[field]


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or "empty"


def _schedulers_of_our_pods(installation: Installation, entry: FoundExtender) -> Sequence[str]:
    """Return the profiles for Moorage's own pods, which must start without it, of an entry's."""
    names = {
        each["spec"]["template"]["spec"].get("schedulerName", DEFAULT_NAME)
        for each in installation.objects.of("deployments")
    }
    return sorted(names & set(known(entry.scheduler.configuration).scheduler_names))


def extender_verbs(installation: Installation) -> Iterator[Finding]:
    """The verbs are those that `moorage config extender` prints for the active policy."""
    wanted = _union(_planned(installation))
    for scheduler, configuration in installation.configurations:
        entries = [each for each in installation.entries if each.scheduler is scheduler]
        offered = {verb for each in entries for verb in VERBS if each.extender.verb(verb)}
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


def extender_resources(installation: Installation) -> Iterator[Finding]:
    """The managedResources cover every pod that an enabled plugin applies to."""
    planned = _planned(installation)
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


def profiles(installation: Installation) -> Iterator[Finding]:
    """kube-scheduler has each profile of the policy, and the policy each of its own."""
    names, ours = installation.scheduler_names, installation.policy["profiles"]
    for each in set(ours) - set(names):
        yield problem(
            f"no kube-scheduler that asks Moorage has the profile {each}{suggestion(each, names)}: "
            "pods that name it get nothing of the policy",
            f"add schedulerName: {each} to profiles in kube-scheduler's configuration, and restart "
            "it; or remove the profile from the policy",
        )
    for each in set(names) - {*ours, DEFAULT_NAME}:
        yield warning(
            f"kube-scheduler asks about pods of {each}{suggestion(each, ours)}, which is no "
            "profile of the policy: they pass all filters and get no scores",
            "add the profile to the policy, or leave it to another kube-scheduler",
        )


def _planned(installation: Installation, *, ignorable: bool = False) -> Sequence[ExtenderEntry]:
    """Return the entries that the active policy needs."""
    live = [each for each in installation.policy["plugins"] if not each["onlyShadow"]]
    infos = {kind: [_info(each) for each in live if each["kind"] == kind] for kind in KINDS}
    return entries_for(infos, ignorable=ignorable)


def _info(plugin: Object) -> PluginInfo:
    return PluginInfo(
        name=plugin["name"],
        points=frozenset(plugin["points"]),
        reads_placements=plugin["readsPlacements"],
        managed_resources=tuple(plugin["managedResources"]),
    )


def _union(entries: Sequence[ExtenderEntry]) -> Mapping[Verb, Sequence[str]]:
    return {verb: plugins for entry in entries for verb, plugins in entry.verbs.items()}
