"""Finds arguments without a default, which a policy made of --plugin cannot give."""

import inspect
import re

import msgspec

from moorage import Arguments
from moorage.plugin.errors import place_of
from moorage_host.plugins.registry import Registered


def missing_argument(registered: Registered) -> str:
    """Return which argument a plugin needs a policy for, and where it is; empty if none."""
    arguments = registered.kind.Args
    required = [each.name for each in msgspec.structs.fields(arguments) if each.required]
    if not required:
        return ""
    name = f"{registered.kind.__name__}.Args.{required[0]}"
    place = _place(arguments, required[0])
    return f"{place}: {name} has no default: set it in a policy: --config FILE"


def placeholders(name: str, arguments: type[Arguments]) -> str:
    """Return the lines of a profile in a policy that set what has no default; empty if nothing."""
    required = [each for each in msgspec.structs.fields(arguments) if each.required]
    if not required:
        return ""
    given = [f"      {each.encode_name}: # required" for each in required]
    return "\n".join([f"  - name: {name}", "    args:", *given])


def _place(arguments: type[Arguments], name: str) -> str:
    lines, first = inspect.getsourcelines(arguments)
    declared = (i for i, line in enumerate(lines, first) if re.match(rf"\s*{name}\s*:", line))
    return place_of(inspect.getfile(arguments), next(declared, first))
