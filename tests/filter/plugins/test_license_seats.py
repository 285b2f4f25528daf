import msgspec
import pytest

from moorage import Pod, Rejection
from moorage.testing import make_node, make_pod, run_filter
from services.filter.plugins.license_seats import TAKEN, LicenseSeats

KEY = "example.com/license"
NODES = (make_node("n1"), make_node("n2"))
PASS = {"n1": None, "n2": None}
FULL = {"n1": TAKEN, "n2": TAKEN}


def user(name: str, license_: str = "cad", node: str = "", namespace: str = "default") -> Pod:
    return make_pod(name, labels={KEY: license_}, node=node, namespace=namespace)


def seats(**args: object) -> LicenseSeats:
    return LicenseSeats(LicenseSeats.Args(**args))  # type: ignore[arg-type]


def test_a_pod_runs_while_a_seat_is_free_in_the_whole_cluster() -> None:
    plugin = seats(seats={"cad": 2})
    first, second = user("a", node="n1"), user("b", node="n2", namespace="other")
    assert run_filter(plugin, user("c"), *NODES, pods=[first]) == PASS
    assert run_filter(plugin, user("c"), *NODES, pods=[first, second]) == FULL
    assert plugin.latest_note == "2 of 2 seats of cad are taken"
    assert plugin.wants_claim(user("c"))


def test_each_value_of_the_label_has_seats_of_its_own() -> None:
    plugin = seats(seats={"cad": 1})
    taken = [user("a", node="n1")]
    assert run_filter(plugin, user("b", "sim"), *NODES, pods=taken) == PASS
    assert run_filter(plugin, make_pod("plain"), *NODES, pods=taken) == PASS
    assert not plugin.wants_claim(make_pod("plain"))


def test_values_that_are_not_listed_may_have_a_limit_too() -> None:
    assert run_filter(seats(other_seats=0), user("a", "new"), *NODES) == FULL


def test_each_namespace_may_have_seats_of_its_own() -> None:
    plugin = seats(seats={"cad": 1}, namespaced=True)
    other = user("a", node="n1", namespace="other")
    assert run_filter(plugin, user("b"), *NODES, pods=[other]) == PASS
    assert run_filter(plugin, user("b"), *NODES, pods=[user("a", node="n1")]) == FULL


@pytest.mark.parametrize("args", [{"seats": {"cad": -1}}, {"otherSeats": -2}])
def test_a_limit_without_sense_is_refused(args: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        msgspec.convert(args, LicenseSeats.Args)


def test_the_reason_lets_kube_scheduler_evict() -> None:
    assert Rejection("all seats of the pod's license are taken", unresolvable=False) == TAKEN
