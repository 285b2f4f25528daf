"""ZoneSpread, as installed."""

from acme_zone_spread import NO_ZONE, ZoneSpread

from moorage.testing import make_node, make_pod, run_filter, run_score

ZONE = "topology.kubernetes.io/zone"
NODES = (make_node("a", labels={ZONE: "east"}), make_node("b", labels={ZONE: "west"}))
WEB = make_pod("web-2", labels={"app": "web"})


def test_the_emptier_zone_is_preferred() -> None:
    running = make_pod("web-1", labels={"app": "web"}, node="a")
    assert run_score(ZoneSpread(), WEB, *NODES, pods=[running]) == {"a": 0, "b": 100}


def test_other_apps_and_namespaces_do_not_count() -> None:
    others = [
        make_pod("db-1", labels={"app": "db"}, node="a"),
        make_pod("web-1", namespace="other", labels={"app": "web"}, node="a"),
    ]
    assert run_score(ZoneSpread(), WEB, *NODES, pods=others) == {"a": 100, "b": 100}


def test_nodes_without_a_zone_are_rejected() -> None:
    assert run_filter(ZoneSpread(), WEB, NODES[0], make_node("c")) == {"a": None, "c": NO_ZONE}


def test_pods_of_no_app_go_anywhere() -> None:
    assert run_filter(ZoneSpread(), make_pod(), make_node("c")) == {"c": None}
    assert run_score(ZoneSpread(), make_pod(), *NODES) == {}
