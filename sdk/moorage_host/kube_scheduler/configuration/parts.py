"""What the parts of a KubeSchedulerConfiguration share: how Go reads a field."""

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
