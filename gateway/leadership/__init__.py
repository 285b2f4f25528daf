"""When this process may decide: terms, the barriers at the binders, and the election by Lease."""

from gateway.leadership.leadership import Leadership

__all__ = ["Leadership"]
