"""The arguments that the policy gives to a plugin."""

import inspect
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.plugin.errors import refuse


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A plugin's arguments: fields with types, defaults and bounds; camelCase in YAML.

    Not frozen, because type checkers would then ask every author to repeat that.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in vars(cls).items():
            if not name.startswith("_") and _is_plain(value) and name not in _annotated(cls):
                kind = type(value).__name__
                refuse(
                    f"{cls.__qualname__.rpartition('<locals>.')[2]}.{name} needs a type, such as "
                    f"`{name}: {kind} = {value!r}`",
                    statement=rf"\s*{name}\s*=",
                )


class NoArguments(Arguments):
    """No arguments."""


ArgumentsT_co = TypeVar("ArgumentsT_co", bound=Arguments, covariant=True)


class HasArgs(Protocol[ArgumentsT_co]):
    """A plugin, as type checkers see it: its nested class `Args` is the type of its `args`."""

    @property
    def Args(self) -> type[ArgumentsT_co]:  # noqa: N802 - the name of the nested class
        """The class of the arguments."""


def _is_plain(value: object) -> bool:
    """Whether it is a value, which an author may have meant as a default."""
    is_code = inspect.isroutine(value) or inspect.isclass(value)
    return not (is_code or inspect.isdatadescriptor(value) or hasattr(value, "__get__"))


def _annotated(cls: type) -> frozenset[str]:
    return frozenset(inspect.get_annotations(cls))
