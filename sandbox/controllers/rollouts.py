"""There are no rollouts here: how users learn of it."""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers.objects import Objects

EXPLANATION = (
    "The template has changed. The sandbox makes no rollouts: new pods get the new template, "
    "pods that are there keep theirs until they are deleted."
)


def note_no_rollout(objects: Objects, owner: Object) -> None:
    """Write an event about an object whose pods do not all have its template."""
    objects.record(owner, "Warning", "NoRollout", EXPLANATION)
