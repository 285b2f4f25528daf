"""What the parts of a KubeSchedulerConfiguration share: types of fields, and rules for names."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

Int32 = Annotated[
    int, Meta(ge=-(2**31), le=2**31 - 1, title="an integer from -2147483648 to 2147483647")
]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, title="an integer of 64 bits")]
Duration = Annotated[str, Meta(title='a duration such as "500ms" or "5s"')]


class ConfigurationPart(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of the configuration: an unknown field is an error, a missing one has its default."""


_LONGEST_NAME = 63
_LONGEST_PREFIX = 253

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_LETTERS = "letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends"


def label_problem(name: str) -> str:
    """Return why a text cannot be the key of a label, such as example.com/rack; "" if it can."""
    prefix, slash, own = name.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return f'"{name}" must have a domain before the `/`: lower-case letters, digits, `-`, `.`'
    if len(own) > _LONGEST_NAME or not _NAME.fullmatch(own):
        return f'"{name}" must have a name of 1 to {_LONGEST_NAME} {_LETTERS}'
    return ""


def label_value_problem(value: str) -> str:
    """Return why a text cannot be the value of a label; "" if it can."""
    if not value or (len(value) <= _LONGEST_NAME and _NAME.fullmatch(value)):
        return ""
    return f'"{value}" must be empty, or up to {_LONGEST_NAME} {_LETTERS}'


def extended_resource_problem(name: str) -> str:
    """Return why a text cannot name a resource that is not Kubernetes' own; "" if it can."""
    if problem := label_problem(name):
        return problem
    if "/" not in name or "kubernetes.io/" in name:
        return f'"{name}" must have a domain that is not Kubernetes\' own: example.com/{name}'
    if name.startswith("requests."):
        return f'"{name}" must not begin with "requests."'
    return label_problem(f"requests.{name}")
