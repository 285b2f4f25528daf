"""Which NetworkPolicies keep kube-scheduler from the gateway."""

from typing import Any

import pytest

from cli.doctor.checks.reaching.network import Connection, forbidding

Object = dict[str, Any]

GATEWAY: Object = {
    "metadata": {"name": "gateway-1", "namespace": "moorage", "labels": {"app": "gateway"}},
    "spec": {"containers": [{"ports": [{"name": "extender", "containerPort": 8888}]}]},
}
SCHEDULER: Object = {
    "metadata": {"name": "scheduler-1", "namespace": "moorage", "labels": {"app": "scheduler"}},
    "spec": {"containers": []},
    "status": {"podIP": "10.1.0.7", "hostIP": "192.168.0.7"},
}
STATIC: Object = {
    **SCHEDULER,
    "metadata": {"name": "kube-scheduler-a", "namespace": "kube-system", "labels": {"app": "any"}},
    "spec": {"containers": [], "hostNetwork": True},
    "status": {"podIP": "192.168.0.7", "hostIP": "192.168.0.7"},
}
SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


def policy(*rules: Object, selector: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "only-these", "namespace": "moorage"},
        "spec": {"podSelector": selector or {}, "ingress": list(rules), **spec},
    }


BY_LABEL: Object = {"from": [{"podSelector": {"matchLabels": {"app": "scheduler"}}}]}
BY_BLOCK: Object = {
    "from": [{"ipBlock": {"cidr": "192.168.0.0/24", "except": ["192.168.0.9/32"]}}],
    "ports": [{"port": "extender"}],
}
TO_GATEWAY: Object = {"to": [{"podSelector": {"matchLabels": {"app": "gateway"}}}]}
BY_SPACE: Object = {"from": [{"namespaceSelector": {"matchLabels": SYSTEM}}]}


@pytest.mark.parametrize(
    ("policies", "source", "is_allowed"),
    [
        ([], SCHEDULER, True),
        ([policy()], SCHEDULER, False),
        ([policy(policyTypes=["Egress"])], SCHEDULER, False),
        ([policy(policyTypes=["Egress"])], STATIC, True),
        ([policy(policyTypes=["Egress"], egress=[TO_GATEWAY])], SCHEDULER, True),
        ([policy(selector={"matchLabels": {"app": "filter"}})], SCHEDULER, True),
        ([policy(BY_LABEL)], SCHEDULER, True),
        ([policy(), policy(BY_LABEL)], SCHEDULER, True),
        ([policy({**BY_LABEL, "ports": [{"port": 9090}]})], SCHEDULER, False),
        ([policy({**BY_LABEL, "ports": [{"port": 8000, "endPort": 8999}]})], SCHEDULER, True),
        ([policy({"ports": [{"port": 8888}]})], STATIC, True),
        # On the node's network neither labels nor namespaces count.
        ([policy(BY_LABEL)], STATIC, False),
        ([policy(BY_SPACE)], STATIC, False),
        ([policy(BY_SPACE)], {**STATIC, "spec": {"containers": []}}, True),
        ([policy(BY_BLOCK)], STATIC, True),
        ([policy(BY_BLOCK)], SCHEDULER, False),
    ],
)
def test_the_gateway_lets_in_whom_some_policy_names(
    policies: list[Object], source: Object, is_allowed: bool
) -> None:
    connection = Connection(
        source=source,
        source_labels=SYSTEM if source is not SCHEDULER else {},
        target=GATEWAY,
        target_labels={},
        port=8888,
    )
    names = forbidding(policies, connection)
    assert not names if is_allowed else "only-these" in names
