"""When this process may decide: terms, the barriers at the binders, and the election by Lease."""

from gateway.leadership.leadership import Leadership, make_leadership

__all__ = ["Leadership", "make_leadership"]
