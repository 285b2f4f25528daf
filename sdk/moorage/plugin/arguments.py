"""The arguments that the policy gives to a plugin."""

from typing import Protocol, TypeVar

import msgspec


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A plugin's arguments: fields with types, defaults and bounds; camelCase in YAML.

    Not frozen, because type checkers would then ask every author to repeat that.
    """


class NoArguments(Arguments):
    """No arguments."""


ArgumentsT_co = TypeVar("ArgumentsT_co", bound=Arguments, covariant=True)


class HasArgs(Protocol[ArgumentsT_co]):
    """A plugin, as type checkers see it: its nested class `Args` is the type of its `args`."""

    @property
    def Args(self) -> type[ArgumentsT_co]:  # noqa: N802 - the name of the nested class
        """The class of the arguments."""
