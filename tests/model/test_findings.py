"""What the model has found, as it made it smaller."""

from collections.abc import Iterator

import pytest

from tools.model.machine import Failover


@pytest.fixture
def machine() -> Iterator[Failover]:
    machine = Failover()
    machine.start()
    try:
        yield machine
        machine.rules_of_the_cluster()
        machine.rules_of_the_view()
    finally:
        machine.teardown()


def test_a_pod_that_came_and_was_bound_unseen_counts_after_a_takeover(machine: Failover) -> None:
    machine.place(at=0, fault="ok", kind="claims", node=0, seen=False)
    machine.take_over(at=1, arrive=False)
    assert machine.gateways[1].state.place_of("uid-p0") == "n0"


@pytest.mark.parametrize("take_over", [False, True])
def test_a_pod_keeps_its_node_while_it_may_be_bound_there(
    machine: Failover, take_over: bool
) -> None:
    machine.place(at=0, fault="dark", kind="claims", node=0, seen=False)
    if take_over:
        machine.take_over(at=1, arrive=True)
    gateway = machine.gateways[take_over]
    assert gateway.state.place_of("uid-p0") == "n0"
    machine.schedule(at=int(take_over), node=1, pick=0)
    assert machine.chosen == {}
    assert gateway.state.place_of("uid-p0") == "n0"


def test_a_bound_pod_stays_where_it_is_after_a_restart(machine: Failover) -> None:
    machine.place(at=0, fault="dark", kind="claims", node=0, seen=False)
    machine.restart(at=0)
    machine.schedule(at=0, node=1, pick=0)
    assert machine.chosen == {}
    assert machine.gateways[0].state.place_of("uid-p0") == "n0"


def test_a_pod_may_move_once_its_bind_is_known_to_have_failed(machine: Failover) -> None:
    machine.place(at=0, fault="held", kind="checks", node=0, seen=True)
    machine.time_passes(seconds=1.0)
    assert machine.gateways[0].state.place_of("uid-p0") == "n0"
    machine.schedule(at=0, node=1, pick=0)
    assert machine.chosen == {("uid-p0", 0): "n1"}
    machine.bind(at=0, pick=0, fault="ok")
    assert machine.api.pods["uid-p0"].spec.node_name == "n1"
