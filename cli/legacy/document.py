"""The Policy that kube-scheduler read until Kubernetes 1.22; reading it finds all mistakes at once.

Called by `cli.legacy.convert`. Fields and bounds are those of the last version that had it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from cli.legacy.names import PREDICATES, PRIORITIES
from moorage.errors import ConfigurationError, suggestion
from moorage_host.policy.checks import find_problems
from moorage_host.policy.problems import Problem, child
from moorage_host.policy.yaml_lines import Tree, read_tree

_Name = Annotated[str, Meta(min_length=1, title="a name")]
_Weight = Annotated[int, Meta(ge=1, le=2**31 - 1, title="an integer from 1 to 2147483647")]
_Percent = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]
_Ten = Annotated[int, Meta(ge=0, le=10, title="an integer from 0 to 10")]
_Nanoseconds = Annotated[
    int, Meta(title="a whole number of nanoseconds, such as 5000000000 for 5 s")
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the document."""


class ServiceAffinity(_Part, frozen=True, kw_only=True):
    """Pods of one Service only on nodes that are alike in these labels."""

    labels: tuple[_Name, ...]


class LabelsPresence(_Part, frozen=True, kw_only=True):
    """Only nodes that have all of these labels, or none of them."""

    labels: tuple[_Name, ...]
    presence: bool = False


class PredicateArgument(_Part, frozen=True, kw_only=True):
    """What a predicate of the user's own does."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class Predicate(_Part, frozen=True, kw_only=True):
    """A rule for nodes."""

    name: _Name
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(_Part, frozen=True, kw_only=True):
    """Spreads pods of one Service over the values of a label."""

    label: _Name


class LabelPreference(_Part, frozen=True, kw_only=True):
    """Prefers nodes that have a label, or those that do not."""

    label: _Name
    presence: bool = False


class ShapePoint(_Part, frozen=True, kw_only=True):
    """The score, 0 to 10, at a utilization in percent."""

    utilization: _Percent
    score: _Ten


class ResourceWeight(_Part, frozen=True, kw_only=True):
    """How much a resource counts; 0 means 1."""

    name: _Name
    weight: _Percent = 0


class RequestedToCapacityRatio(_Part, frozen=True, kw_only=True):
    """A score that follows a curve."""

    shape: Annotated[tuple[ShapePoint, ...], Meta(min_length=1, title="at least one point")]
    resources: tuple[ResourceWeight, ...] = ()


class PriorityArgument(_Part, frozen=True, kw_only=True):
    """What a priority of the user's own does."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatio | None = None


class Priority(_Part, frozen=True, kw_only=True):
    """A score for nodes."""

    name: _Name
    weight: _Weight
    argument: PriorityArgument | None = None


class ManagedResource(_Part, frozen=True, kw_only=True):
    """A resource that makes an extender interested in a pod."""

    name: _Name
    ignored_by_scheduler: bool = False


class TLS(_Part, frozen=True, kw_only=True):
    """How to reach an https extender."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class Extender(_Part, frozen=True, kw_only=True):
    """A process that kube-scheduler asks; Go's decoder took both spellings of HTTPS."""

    url_prefix: _Name
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: Annotated[int, Meta(ge=0, title="an integer, at least 0")] = 0
    enable_https: bool = msgspec.field(default=False, name="enableHttps")
    enable_https_too: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TLS | None = None
    http_timeout: _Nanoseconds = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


_ELSEWHERE = "it belongs to the KubeSchedulerConfiguration beside the Policy"


class Policy(_Part, frozen=True, kw_only=True):
    """The whole document; None is what kube-scheduler did by default."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("algorithmSource", "schedulerName", "leaderElection", "profiles"), _ELSEWHERE
    )

    api_version: Literal["v1", "kubescheduler.config.k8s.io/v1"]
    kind: Literal["Policy"]
    predicates: tuple[Predicate, ...] | None = None
    priorities: tuple[Priority, ...] | None = None
    extenders: tuple[Extender, ...] = ()
    hard_pod_affinity_symmetric_weight: _Percent = 0
    always_check_all_predicates: bool = False


def read_policy(path: Path) -> tuple[Policy, Tree]:
    """Read a Policy in JSON or YAML.

    Raises:
        ConfigurationError: It cannot be read, or one line for each mistake in it.
    """
    try:
        tree = read_tree(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigurationError(f"cannot read the policy {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"cannot read the policy {path}: it is not UTF-8") from error
    tree.refuse(list(_header_problems(tree.value)))
    value = _without_nulls(tree.value)
    tree.refuse(tree.problems + find_problems(value, Policy, ""))
    policy = msgspec.convert(value, Policy)
    tree.refuse([*_name_problems(policy), *_extender_problems(policy.extenders)])
    return policy, tree


def _header_problems(value: Any) -> Iterator[Problem]:
    if isinstance(value, dict) and value.get("kind") == "ConfigMap":
        text = "a ConfigMap holds the Policy as text: put what is below data into a file of its own"
        yield Problem("kind", text)
    elif not isinstance(value, dict):
        yield from find_problems(value, Policy, "")
    else:
        header = {name: value[name] for name in ("apiVersion", "kind") if name in value}
        yield from find_problems(header, Policy, "")


def _without_nulls(value: Any) -> Any:
    """Drop fields that are null, which Go takes for absent ones."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _name_problems(policy: Policy) -> Iterator[Problem]:
    for index, predicate in enumerate(policy.predicates or ()):
        path = child("predicates", index)
        yield from _entry_problems(path, predicate, PREDICATES, "predicate")
    for index, priority in enumerate(policy.priorities or ()):
        path = child("priorities", index)
        yield from _entry_problems(path, priority, PRIORITIES, "priority")
        ratio = priority.argument and priority.argument.requested_to_capacity_ratio_arguments
        for point, (one, other) in enumerate(pairwise(ratio.shape if ratio else ())):
            if one.utilization >= other.utilization:
                shape = f"{path}.argument.requestedToCapacityRatioArguments.shape[{point + 1}]"
                yield Problem(f"{shape}.utilization", "must be above that of the point before")


def _entry_problems(
    path: str, entry: Predicate | Priority, known: Mapping[str, Any], kind: str
) -> Iterator[Problem]:
    given = msgspec.structs.asdict(entry.argument) if entry.argument else {}
    count = sum(argument is not None for argument in given.values())
    if count > 1:
        yield Problem(f"{path}.argument", "takes one argument, not several")
    elif count == 0 and entry.name not in known:
        near = suggestion(entry.name, known)
        hint = near or f"; a {kind} of your own needs an argument"
        yield Problem(f"{path}.name", f"unknown {kind} `{entry.name}`{hint}")


def _extender_problems(extenders: tuple[Extender, ...]) -> Iterator[Problem]:
    managed = Counter(r.name for extender in extenders for r in extender.managed_resources)
    binders = [index for index, extender in enumerate(extenders) if extender.bind_verb]
    for index in binders[1:]:
        first = f"extenders[{binders[0]}] has one"
        yield Problem(f"extenders[{index}].bindVerb", f"only one extender may bind: {first}")
    for index, extender in enumerate(extenders):
        path, tls = child("extenders", index), extender.tls_config
        if extender.prioritize_verb and not extender.weight:
            yield Problem(path, "prioritizeVerb needs a weight above 0")
        if tls and tls.insecure and (tls.ca_file or tls.ca_data):
            yield Problem(f"{path}.tlsConfig.insecure", "cannot be true together with a CA")
        for number, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{number}].name"
            if managed[resource.name] > 1:
                yield Problem(where, f"`{resource.name}` is managed more than once")
            elif "/" not in resource.name or "kubernetes.io/" in resource.name:
                yield Problem(where, f"`{resource.name}` is no extended resource: DOMAIN/NAME")
