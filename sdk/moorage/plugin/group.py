"""What a plugin says of a group: pods that are placed together or not at all."""

from collections.abc import Sequence

import msgspec

from moorage.models import Pod

GROUP_TIMEOUT = 60.0
"""Seconds for which the members of a group that fits hold their nodes, until they are bound."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are placed together or not at all; `FilterPlugin.group` returns it.

    Attributes:
        name: What it is called; no other group of the plugin has the name.
        members: All of its pods that exist, on nodes or not, in the order in which they are placed.
        min_count: So many of them have to be on nodes together; more are placed if they fit.
        topology_key: All of them go to nodes with one value of this label; "" for any nodes.
        order_key: Members are placed on nodes in the order of this label's values, so that one is
            near the next; "" for the order in which the cluster has them.
        ahead: Groups that wait and come before it: room is left for those of them that fit.
        problem: Why it cannot be placed as it is, as a constant text; "" if it can.
        timeout: Seconds for which members hold the nodes that were found until they are bound.
    """

    name: str
    members: Sequence[Pod]
    min_count: int
    topology_key: str = ""
    order_key: str = ""
    ahead: Sequence["Group"] = ()
    problem: str = ""
    timeout: float = GROUP_TIMEOUT
