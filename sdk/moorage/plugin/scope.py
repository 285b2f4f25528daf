"""What the verdict or the score of a plugin depends on, from least to most."""

from enum import IntEnum


class Scope(IntEnum):
    """What a plugin's verdict or raw score of a node depends on. The wider scope is the larger.

    All of them but `ANYTHING` allow the plugin's arguments and the pod's signature: its namespace,
    labels, annotations, owner references and spec, or those of them that `pod_fields` names. None
    of them allows a dependence on which nodes a call happens to be about, see `Nodes.cluster`.

    Replicas cache verdicts and scores by this declaration. A scope that is too narrow makes them
    use outdated ones, and so misplaces pods; one that is too wide only costs calls.
    """

    NODE = 1
    """On that node with the pods on it."""

    MANIFESTS = 2
    """Also on which nodes exist, on the manifests of all nodes, and on the objects that the plugin
    names in `reads`; not on the pods on other nodes."""

    CLUSTER = 3
    """On anything in the snapshot: all nodes, all pods on them, the objects of `reads`."""

    ANYTHING = 4
    """Also on what is outside of the snapshot, such as a clock, a file, random numbers, Prometheus,
    earlier cycles, or the pod's name, uid or status. Never cached."""
