"""The base class of bind plugins: they act before and after a pod is bound."""

from typing import ClassVar

from moorage.plugin.base import Plugin
from moorage.plugin.bind.answers import Allow, Permission, Refusal
from moorage.plugin.bind.binding import Binding
from moorage.plugin.errors import refuse


class BindPlugin(Plugin, abstract=True):
    """Acts before and after a pod is bound. Override `permit`, `pre_bind` or `post_bind`.

    Binds of several pods run at the same time: keep what belongs to one pod by its uid.

    Attributes:
        reads_pod: Whether it needs `binding.pod`, or should not be asked about pods that are bound
            already. False saves a request to the API server if no plugin of the profile needs it.
        reads_snapshot: Whether it needs `binding.nodes`. The gateway sends the binder the state of
            the cluster while such a plugin is enabled, with the objects of `reads`.
    """

    reads_pod: ClassVar[bool] = True
    reads_snapshot: ClassVar[bool] = False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        of_other_kinds = hasattr(cls, "filter") or hasattr(cls, "score")
        if cls.reads and not cls.reads_snapshot and not of_other_kinds:
            refuse(
                f"{cls.__name__} reads further objects, but not the snapshot that has them: set "
                "reads_snapshot = True",
                statement=r"\s*reads\b",
            )

    def permit_key(self, binding: Binding) -> str:
        """Return the key of the binds that *binding* may have to wait for; "" if it need not.

        `permit` then sees those that have come in `binding.arrived`.
        """
        return ""

    async def permit(self, binding: Binding) -> Permission:
        """Return `Allow()`, `Wait(seconds)` for others, or a `Refusal` (Permit).

        Called before `pre_bind`, and again for a bind that waits whenever another with the same
        `permit_key` comes; at once if that one is allowed.
        """
        return Allow()

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Do what must be done before *binding* is written; return why it may not be, or None.

        Called again when kube-scheduler tries the pod again, maybe for another node.
        """
        return None

    async def post_bind(self, binding: Binding) -> None:
        """Do what is to be done once the pod is bound; that may be after it has started."""
