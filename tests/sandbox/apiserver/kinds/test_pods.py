"""What the server adds to pods, and which pods it refuses."""

from tests.sandbox.apiserver.support import NODES, PODS, Http, node, pod


async def test_pods_tolerate_brief_outages_of_their_node(http: Http) -> None:
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5}
    created = await http.create(PODS, pod(tolerations=[mine]))
    kept, added = created["spec"]["tolerations"]
    assert kept == mine
    assert added == {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


async def test_an_amount_that_is_none_is_refused_with_the_field(http: Http) -> None:
    reply = await http.send("POST", NODES, node() | {"status": {"capacity": {"cpu": "lots"}}})
    assert reply.code == 422
    assert "status.capacity[cpu]" in reply.message
