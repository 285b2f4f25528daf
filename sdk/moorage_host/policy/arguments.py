"""Turns the arguments that a policy gives to a plugin into the plugin's own `Args`.

Called where plugins are built: by a replica, `moorage.testing`, the command line.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from moorage.errors import ConfigurationError
from moorage_host.policy.checks import find_problems
from moorage_host.policy.problems import Problem

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)


def argument_problems(
    args: Mapping[str, Any], args_type: type[msgspec.Struct], path: str
) -> list[Problem]:
    """Return what is wrong with the arguments of a plugin, whose class declares *args_type*."""
    try:
        return find_problems(args, args_type, path)
    except Exception as error:  # noqa: BLE001 - the author's __post_init__, or types msgspec lacks
        return [Problem(path, f"{type(error).__name__}: {error}")]


def check_arguments(args: Mapping[str, Any], args_type: type[ArgsT], path: str) -> ArgsT:
    """Return the arguments as an instance of a plugin's `Args`.

    Args:
        args: An object as it comes from YAML or JSON, its fields named as they are written there.
        args_type: The Struct that declares types, defaults and bounds.
        path: Where the object stands, for messages.

    Raises:
        ConfigurationError: One line for each mistake, with its path and the nearest known field.
    """
    try:
        problems = find_problems(args, args_type, path)
        if not problems:
            return msgspec.convert(args, args_type, strict=True)
    except Exception as error:
        # The author's own __post_init__, or a type that msgspec does not know.
        raise ConfigurationError(f"{path}: {type(error).__name__}: {error}") from error
    raise ConfigurationError("\n".join(f"{p.path}: {p.message}" for p in problems))
