"""The node affinity that a profile may add for all its pods, and what kube-scheduler asks of it."""

import re
from collections.abc import Iterator

import msgspec

from moorage.errors import suggestion
from moorage_host.kube_scheduler.configuration.parts import (
    ConfigurationPart,
    Int32,
    label_problem,
    label_value_problem,
)
from moorage_host.policy.checks import Problem, child


class NodeSelectorRequirement(ConfigurationPart, frozen=True, omit_defaults=True):
    """A condition on a label or a field."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class AffinityTerm(ConfigurationPart, frozen=True, omit_defaults=True):
    """Conditions that hold together; one without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield what is wrong with the conditions."""
        for index, requirement in enumerate(self.match_expressions):
            yield from _label_problems(requirement, child(f"{path}.matchExpressions", index))
        for index, requirement in enumerate(self.match_fields):
            yield from _field_problems(requirement, child(f"{path}.matchFields", index))


class RequiredAffinity(ConfigurationPart, frozen=True, omit_defaults=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[AffinityTerm, ...] = ()


class PreferredTerm(ConfigurationPart, frozen=True, omit_defaults=True):
    """A term that counts in the score; kube-scheduler skips one of weight 0."""

    weight: Int32 = 0
    preference: AffinityTerm = AffinityTerm()


class AddedAffinity(ConfigurationPart, frozen=True, omit_defaults=True):
    """What nodes must be like for all pods of a profile."""

    required: RequiredAffinity = msgspec.field(
        default=RequiredAffinity(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[-+]?0*[0-9]{1,19}")


def _label_problems(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a condition on a label; the first is mostly the cause of others."""
    operator, values = requirement.operator, requirement.values
    if operator not in _OPERATORS:
        near = suggestion(operator, _OPERATORS)
        message = f'must be one of {", ".join(_OPERATORS)}, got "{operator}"{near}'
        yield Problem(f"{path}.operator", message)
    elif operator in ("In", "NotIn") and not values:
        yield Problem(f"{path}.values", f"must have a value with {operator}")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Problem(f"{path}.values", f"must be empty with {operator}")
    elif operator in ("Gt", "Lt"):
        yield from _number_problems(requirement, path)
    if problem := label_problem(requirement.key):
        yield Problem(f"{path}.key", problem)
    for index, value in enumerate(values):
        if problem := label_value_problem(value):
            yield Problem(child(f"{path}.values", index), problem)


def _number_problems(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if len(requirement.values) != 1:
        yield Problem(f"{path}.values", f"must have one value with {requirement.operator}")
        return
    (value,) = requirement.values
    is_read = _INTEGER.fullmatch(value) and -(2**63) <= int(value) < 2**63
    if not is_read:
        where = child(f"{path}.values", 0)
        yield Problem(where, f'must be an integer with {requirement.operator}, got "{value}"')


def _field_problems(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if requirement.operator not in _FIELD_OPERATORS:
        near = suggestion(requirement.operator, _FIELD_OPERATORS)
        yield Problem(
            f"{path}.operator", f'must be In or NotIn, got "{requirement.operator}"{near}'
        )
    elif len(requirement.values) != 1:
        yield Problem(f"{path}.values", "must have one value")
