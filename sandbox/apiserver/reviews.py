"""SelfSubjectAccessReview, for `kubectl auth can-i`: nothing is forbidden here, so always yes."""

from sandbox.apiserver.rules import Rules
from sandbox.apiserver.store import Object


def _allow(review: Object) -> None:
    review["status"] = {"allowed": True, "reason": "the sandbox allows everything"}


RULES = Rules(on_create=_allow)
