"""What replicas with different versions of a plugin declare together, whoever greeted last."""

from dataclasses import replace
from itertools import permutations

from gateway.policy.policy import common_declarations
from moorage import Normalization, Scope
from moorage.models import ObjectKind
from moorage_host.policy import PluginInfo

SETS = ObjectKind("apps/v1", "statefulsets")
OLD = PluginInfo(
    name="Likes",
    points=frozenset(("Score",)),
    default_args={"limit": 1, "same": True},
    depends_on=Scope.NODE,
    reads_placements=False,
    pod_fields=("spec.tolerations",),
    normalization=Normalization.MAXIMUM,
    weight=5,
    managed_resources=("example.com/gpu",),
    time_budget=0.1,
)
NEW = PluginInfo(
    name="Likes",
    points=frozenset(("PreScore", "Score")),
    default_args={"limit": 2, "same": True},
    reads=(SETS,),
    depends_on=Scope.CLUSTER,
    pod_fields=("metadata.labels",),
    normalization=Normalization.NONE,
    reads_snapshot=True,
    weight=2,
    time_budget=0.4,
)
OTHER = PluginInfo(name="Other", points=frozenset(("Score",)))


def test_the_most_careful_of_each_holds_whoever_greeted_last() -> None:
    for replicas in permutations(([OLD], [NEW, OTHER], [OLD])):
        common = {info.name: info for info in common_declarations(replicas)}
        assert common["Other"] == OTHER
        likes = common["Likes"]
        assert likes.points == {"PreScore", "Score"}
        assert likes.reads == (SETS,)
        assert likes.depends_on is Scope.CLUSTER
        assert likes.reads_placements
        assert likes.reads_snapshot
        assert likes.managed_resources == ()
        assert set(likes.pod_fields or ()) == {"spec.tolerations", "metadata.labels"}
        assert likes.normalization is None
        assert (likes.weight, likes.time_budget) == (2, 0.4)
        assert likes.default_args == {"same": True}
    assert common_declarations([[NEW], [NEW]]) == [NEW], (
        "replicas that agree declare what each does"
    )
    newer = replace(OLD, managed_resources=("example.com/fpga",))
    for replicas in permutations(([OLD], [newer])):
        (likes,) = common_declarations(replicas)
        assert likes.managed_resources == ("example.com/fpga", "example.com/gpu")
