"""Which kube-schedulers may call, and whose pods each may place: `--scheduler-identity`.

A caller proves names by its certificate. A name alone may place pods of every schedulerName; given
as NAME=PROFILE, once for each profile, it may place theirs alone. In plain text nobody is known.
"""

from collections.abc import Collection, Iterable

from moorage.errors import ConfigurationError


class Schedulers:
    """Those that may call.

    Attributes:
        names: Their names.
        are_limited: Whether one of them may not place all pods.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Read the values of the setting.

        Raises:
            ConfigurationError: One is neither NAME nor NAME=PROFILE.
        """
        self._profiles: dict[str, set[str]] = {}
        self._unlimited: set[str] = set()
        for text in texts:
            name, equals, profile = text.partition("=")
            if not name or bool(equals) != bool(profile):
                raise ConfigurationError(
                    f'--scheduler-identity is "{text}"; write NAME or NAME=PROFILE, such as '
                    "team-scheduler=batch"
                )
            if profile:
                self._profiles.setdefault(name, set()).add(profile)
            else:
                self._unlimited.add(name)
        self.names = frozenset((*self._unlimited, *self._profiles))
        self.are_limited = bool(self._profiles)

    def profiles_of(self, identities: Collection[str] | None) -> frozenset[str] | None:
        """Return the profiles that who has proven these names may ask for; None for all."""
        if identities is None or not self._unlimited.isdisjoint(identities):
            return None
        return frozenset[str]().union(*(self._profiles.get(each, ()) for each in identities))
