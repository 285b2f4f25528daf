"""Bind plugins: they act before and after a pod is bound."""

from typing import ClassVar

from moorage.plugin.base import Plugin
from moorage.plugin.binding import Binding, Refusal


class BindPlugin(Plugin, abstract=True):
    """Acts before and after a pod is bound. Override `pre_bind`, `post_bind`, or both.

    Binds of several pods run at the same time: keep what belongs to one pod by its uid.

    Attributes:
        reads_pod: Whether it needs `binding.pod`, or should not be asked about pods that are bound
            already. False saves a request to the API server if no plugin of the profile needs it.
    """

    reads_pod: ClassVar[bool] = True

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Do what must be done before *binding* is written; return why it may not be, or None.

        Called again when kube-scheduler tries the pod again, maybe for another node.
        """
        return None

    async def post_bind(self, binding: Binding) -> None:
        """Do what is to be done once the pod is bound; that may be after it has started."""
