"""Pods and nodes for tests, with just the fields that a test is about, and plugins run on them.

    pod = make_pod(requests={"cpu": "500m"}, labels={"app": "web"})
    node = make_node("n1", allocatable={"cpu": "2"}, taints=[Taint(key="gpu", effect="NoSchedule")])
    assert run_filter(MyPlugin(), pod, node) == {"n1": None}

Everything has a sensible default, and uids follow from names: equal arguments make equal objects.
"""

from moorage.plugin.clock import time_is
from moorage.testing.builders import DEFAULT_ALLOCATABLE, make_node, make_pod
from moorage.testing.harness import (
    make_binding,
    make_nodes,
    record_retries,
    run_filter,
    run_group,
    run_permit,
    run_pre_bind,
    run_score,
    running,
)
from moorage.testing.locality import assert_node_local
from moorage.testing.shards import assert_same_in_shards

__all__ = [
    "DEFAULT_ALLOCATABLE",
    "assert_node_local",
    "assert_same_in_shards",
    "make_binding",
    "make_node",
    "make_nodes",
    "make_pod",
    "record_retries",
    "run_filter",
    "run_group",
    "run_permit",
    "run_pre_bind",
    "run_score",
    "running",
    "time_is",
]
