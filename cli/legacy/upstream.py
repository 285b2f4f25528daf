"""Writes the KubeSchedulerConfiguration that does what a Policy did. For `cli.legacy.convert`."""

from collections.abc import Iterator

from cli.config.gateway import TLS_FOLDER, tls_fields
from cli.legacy.document import Extender, Policy
from cli.legacy.names import FILTERS, SCORES, Strategy
from cli.legacy.plan import Object, Plan, required_labels
from moorage.units.durations import format_duration

API_VERSION = "kubescheduler.config.k8s.io/v1"

MOORAGE_WEIGHT = 1
"""Moorage repeats the Policy's scores: with MOORAGE_SCALE at most 100 points, they change little.
"""

MOORAGE_SCALE = 10
"""The `scoreScale` of the MoorageConfiguration."""


def kube_scheduler_configuration(
    plan: Plan, policy: Policy, scheduler_name: str, gateway: str
) -> Object:
    """Return the document; what it changes is added to the plan's notes.

    Args:
        plan: What the Policy asks for.
        policy: The Policy, for its extenders.
        scheduler_name: The name of the profile.
        gateway: Where Moorage's gateway is.
    """
    profile: Object = {"schedulerName": scheduler_name}
    if plugins := _plugins(plan):
        profile["plugins"] = plugins
    if arguments := list(_arguments(plan)):
        profile["pluginConfig"] = arguments
    document = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    extenders = [_extender(plan, each, index) for index, each in enumerate(policy.extenders)]
    plan.note("extenders", "percentageOfNodesToScore is 100: extenders are asked after sampling")
    return {
        **document,
        "percentageOfNodesToScore": 100,
        "profiles": [profile],
        "extenders": [*extenders, *_moorage(plan, policy, gateway)],
    }


def _plugins(plan: Plan) -> Object:
    """Return what differs from the default plugins: those that came later stay as they are."""
    known = dict.fromkeys((*FILTERS, *SCORES))
    unused = [name for name in known if not plan.runs(name)]
    filters = plan.filters if plan.filters is not None else set(FILTERS)
    scores = plan.scores if plan.scores is not None else dict.fromkeys(SCORES, 0)
    no_filters = [name for name in FILTERS if name not in filters and name not in unused]
    no_scores = [name for name in SCORES if name not in scores and name not in unused]
    weights = [{"name": name, "weight": weight} for name, weight in scores.items() if weight]
    sets = {
        "multiPoint": _set(unused),
        "preFilter": _set(no_filters),
        "filter": _set(no_filters),
        "preScore": _set(no_scores),
        "score": _set(no_scores) | ({"enabled": weights} if weights else {}),
    }
    return {point: changes for point, changes in sets.items() if changes}


def _set(disabled: list[str]) -> Object:
    return {"disabled": [{"name": name} for name in disabled]} if disabled else {}


def _arguments(plan: Plan) -> Iterator[Object]:
    """Yield a pluginConfig entry for each plugin whose arguments are not the default ones."""
    for strategy in list(plan.strategies)[:1]:
        yield _config("NodeResourcesFit", scoringStrategy=_scoring(plan, strategy))
    if plan.runs("PodTopologySpread"):
        spreading = "System" if plan.spreads else "List"
        yield _config("PodTopologySpread", defaultingType=spreading)
    if plan.hard_affinity:
        yield _config("InterPodAffinity", hardPodAffinityWeight=plan.hard_affinity)
    if labels := list(required_labels(plan)):
        terms = {"nodeSelectorTerms": [{"matchExpressions": labels}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        yield _config("NodeAffinity", addedAffinity=required)


def _config(plugin: str, **arguments: object) -> Object:
    return {"name": plugin, "args": arguments}


def _scoring(plan: Plan, strategy: Strategy) -> Object:
    if strategy != "RequestedToCapacityRatio":
        return {"type": strategy}
    curve = {"shape": shape(plan)}
    return {"type": strategy, "resources": resources(plan), "requestedToCapacityRatio": curve}


def shape(plan: Plan) -> list[Object]:
    """Return the curve of RequestedToCapacityRatio."""
    points = plan.ratio.shape if plan.ratio else ()
    return [{"utilization": point.utilization, "score": point.score} for point in points]


def resources(plan: Plan) -> list[Object]:
    """Return the resources that the score looks at; by default CPU and memory alike."""
    given = plan.ratio.resources if plan.ratio else ()
    weights = {each.name: each.weight or 1 for each in given} or {"cpu": 1, "memory": 1}
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def _extender(plan: Plan, extender: Extender, index: int) -> Object:
    path = f"extenders[{index}]"
    timeout = format_duration(extender.http_timeout / 1e9) if extender.http_timeout else ""
    result: Object = {
        "urlPrefix": extender.url_prefix,
        "filterVerb": extender.filter_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "preemptVerb": extender.preempt_verb,
        "bindVerb": extender.bind_verb,
        "weight": extender.weight,
        "enableHTTPS": extender.enable_https or extender.enable_https_too,
        "tlsConfig": _tls(extender),
        "httpTimeout": timeout,
        "nodeCacheCapable": extender.node_cache_capable,
        "managedResources": _managed(plan, extender, path),
        "ignorable": extender.ignorable,
    }
    if extender.enable_https:
        plan.note(f"{path}.enableHttps", "is spelt enableHTTPS now")
    if timeout:
        plan.note(f"{path}.httpTimeout", f"nanoseconds became a duration: {timeout}")
    if extender.filter_verb and not extender.node_cache_capable:
        text = "with a filterVerb, kube-scheduler 1.33 and later then scores every node as empty"
        plan.note(path, f"nodeCacheCapable is false: {text} (kubernetes/kubernetes#141781)")
    return {name: value for name, value in result.items() if value}


def _tls(extender: Extender) -> Object:
    tls = extender.tls_config
    if tls is None:
        return {}
    fields = {
        "insecure": tls.insecure,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
        "caFile": tls.ca_file,
        "certData": tls.cert_data,
        "keyData": tls.key_data,
        "caData": tls.ca_data,
    }
    return {name: value for name, value in fields.items() if value}


def _managed(plan: Plan, extender: Extender, path: str) -> list[Object]:
    counted = plan.runs("NodeResourcesFit")
    if not counted and any(each.ignored_by_scheduler for each in extender.managed_resources):
        text = "ignoredByScheduler dropped: NodeResourcesFit, which counts resources, does not run"
        plan.note(f"{path}.managedResources", text)
    return [
        {"name": each.name} | ({"ignoredByScheduler": True} if counted else {})
        if each.ignored_by_scheduler
        else {"name": each.name}
        for each in extender.managed_resources
    ]


def _moorage(plan: Plan, policy: Policy, gateway: str) -> list[Object]:
    """Return the entries for Moorage, which come last: one for cycles, and one for binds."""
    binder = next((i for i, each in enumerate(policy.extenders) if each.bind_verb), None)
    plan.note("extenders", f"added Moorage at {gateway}, with the MoorageConfiguration")
    tls = tls_fields(gateway)
    if tls:
        text = f"kube-scheduler's certificate for Moorage is in {TLS_FOLDER}"
        plan.note("extenders", f"{text}; see docs/explanation/security.md")
    if binder is not None:
        text = "only one extender may bind, so Moorage does not"
        plan.note(f"extenders[{binder}].bindVerb", text)
    calls: Object = {
        "urlPrefix": gateway,
        **tls,
        "httpTimeout": "5s",
        "nodeCacheCapable": True,
        "ignorable": False,
    }
    cycle: Object = calls | {
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": MOORAGE_WEIGHT,
    }
    return [cycle] if binder is not None else [cycle, calls | {"bindVerb": "bind"}]
