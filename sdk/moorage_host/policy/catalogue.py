"""What plugins exist, of which kinds, and where they come from.

The gateway builds it from what its replicas announce, the command line from the registries.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from msgspec import Struct

from moorage.errors import PluginLoadError
from moorage.models import ObjectKind
from moorage.plugin.normalization import Normalization
from moorage.plugin.values import DEFAULT_TIME_BUDGET, Scope

Kind = Literal["filter", "score", "bind"]
"""A kind of plugin, and the point of the document at which it is enabled."""

KINDS: tuple[Kind, ...] = get_args(Kind)

IN_TREE = "InTree"
"""Enabled in multiPoint, it stands for kube-scheduler's own plugins; see `defaults`."""

BUILT_IN = "built-in"
"""The origin of the plugins that Moorage brings along."""

RESERVED_NAMES = frozenset({IN_TREE, "*"})
"""Names that mean something else in a policy: no plugin may have one."""


def check_name(name: str, origin: str) -> None:
    """Refuse a plugin whose name means something else in a policy; raises PluginLoadError."""
    if name in RESERVED_NAMES:
        raise PluginLoadError(
            f"the plugin {name} from {origin} cannot have this name, which means something else "
            "in a policy; rename it with a class attribute `name`"
        )


_POINTS: Mapping[Kind, frozenset[str]] = {
    "filter": frozenset({"PreFilter", "Filter", "Reserve"}),
    "score": frozenset({"PreScore", "Score", "NormalizeScore"}),
    "bind": frozenset({"Permit", "PreBind", "Bind", "PostBind"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One plugin as its service announces it.

    Attributes:
        name: The name that the policy uses.
        points: Kubernetes' names of the extension points that it implements.
        origin: Where the code comes from: "built-in", a distribution with its version, or a file.
        args_schema: Its arguments as JSON Schema; without, only the replica checks them.
        args_type: The class that declares its arguments; only the command line knows it.
        default_args: The values of its arguments when the policy gives none.
        reads: The additional kinds of objects that it reads.
        depends_on: What its verdict or raw score of a node depends on.
        reads_placements: Whether it reads which pods are on nodes, so that Moorage has to bind.
        pod_fields: The fields of the signature that matter for it; None if all do.
        managed_resources: The resources without which no pod concerns it; () if all pods do.
        normalization: How its raw scores become 0..100; None if only its own code knows.
        reads_snapshot: Whether it is a bind plugin that reads the snapshot.
        weight: The weight of its scores where the policy gives none.
        time_budget: The seconds that it may take at each step where the policy sets none.
    """

    name: str
    points: frozenset[str]
    origin: str = BUILT_IN
    args_schema: Mapping[str, Any] | None = None
    args_type: type[Struct] | None = None
    default_args: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[ObjectKind, ...] = ()
    depends_on: Scope = Scope.ANYTHING
    reads_placements: bool = True
    pod_fields: tuple[str, ...] | None = None
    managed_resources: tuple[str, ...] = ()
    normalization: Normalization | None = None
    reads_snapshot: bool = False
    weight: int = 1
    time_budget: float = DEFAULT_TIME_BUDGET

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of plugin that it is; usually one."""
        return tuple(kind for kind in KINDS if self.points & _POINTS[kind])


class Catalogue:
    """Plugins by kind and name. A name may stand for a filter here and a score plugin there."""

    def __init__(self, plugins: Iterable[PluginInfo]) -> None:
        """Take *plugins*; of several with the same kind and name the last counts.

        Raises:
            PluginLoadError: One has a name that means something else in a policy.
        """
        self._plugins: dict[tuple[Kind, str], PluginInfo] = {}
        for info in plugins:
            check_name(info.name, info.origin)
            self._plugins |= {(kind, info.name): info for kind in info.kinds}

    def __contains__(self, name: str) -> bool:
        return any((kind, name) in self._plugins for kind in KINDS)

    def __iter__(self) -> Iterator[PluginInfo]:
        return iter(self._plugins.values())

    def get(self, kind: Kind, name: str) -> PluginInfo | None:
        """Return the plugin of this kind and name."""
        return self._plugins.get((kind, name))

    def kinds(self, name: str) -> tuple[Kind, ...]:
        """Return the kinds that exist under this name."""
        return tuple(kind for kind in KINDS if (kind, name) in self._plugins)

    def names(self) -> list[str]:
        """Return all names, in alphabetical order."""
        return sorted({name for _, name in self._plugins})

    def origins(self) -> list[str]:
        """Return where the plugins come from, in alphabetical order."""
        return sorted({info.origin for info in self})
