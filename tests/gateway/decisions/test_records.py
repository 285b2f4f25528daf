"""A decision shows who asked and what followed; who follows decisions gets each one."""

from pathlib import Path

from gateway.cycle.cycle_states import VALUE_BYTES, CycleStates
from moorage.plugin.cycle_state import KeptValue
from tests.gateway.decisions.test_lists import NAMES, decide, deciding
from tools.inprocess.gateway import gateway


async def test_a_decision_shows_how_it_came_about(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        await decide(running, "a", *NAMES[:3])
        await decide(running, "a", *NAMES[:3])
        _, answer = await running.get("/decisions/default/a")
    made, before = answer["attempts"]
    assert made["caller"] == "127.0.0.1"
    assert (made["clusterNodes"], made["filter"]["nodes"]) == (4, 3)
    assert (made["attempt"], made["previous"]) == (2, before["id"])
    assert made["outcome"] == "binding"
    stages = made["queueSeconds"] + made["filter"]["seconds"] + made["score"]["seconds"]
    assert 0 < stages <= made["seconds"]
    plugins = [*made["filter"]["plugins"], *made["score"]["plugins"]]
    assert [each["plugin"] for each in plugins] == ["Picky", "Numbered"]
    assert all(len(each["version"]) == 16 and each["seconds"] > 0 for each in plugins)
    assert before["filter"]["plugins"][0]["version"] == plugins[0]["version"]


async def test_the_page_of_a_pod_has_its_events(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running:
        made = running.api.pod("p")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]},
            "reason": "FailedScheduling",
            "message": "0/3 nodes are available",
            "type": "Warning",
            "action": "Scheduling",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
            "eventTime": "2026-11-27T01:02:03.000000Z",
        }
        other = {
            **event,
            "metadata": {"name": "q.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod"},
        }
        for each in (event, other):
            running.api.create("/apis/events.k8s.io/v1/namespaces/default/events", each)
        _, answer = await running.get("/decisions/default/p")
        (found,) = answer["events"]
        assert found["by"] == "default-scheduler"
        assert found["note"] == "0/3 nodes are available"
        assert answer["created"] == made["metadata"]["creationTimestamp"]
        running.api.fault("list", "events", status=403)
        _, answer = await running.get("/decisions/default/p")
        assert answer["events"] is None


def values(**texts: bytes) -> dict[str, KeptValue]:
    return {key: KeptValue(json=text) for key, text in texts.items()}


def test_the_score_phase_adds_to_the_filter_phase_of_the_same_attempt() -> None:
    states = CycleStates(10_000)
    states.begin("uid", {"device": KeptValue(by_node={"a": b"1"}), **values(why=b'"first"')})
    states.add("uid", values(why=b'"later"', score=b"7"))
    assert states.at("uid", "a") == {"device": b"1", "why": b'"later"', "score": b"7"}
    assert states.at("uid", "b") == {"why": b'"later"', "score": b"7"}
    assert states.at("other", "a") == {}
    states.begin("uid", values(two=b"2"))
    assert states.at("uid", "a") == {"two": b"2"}, "a new attempt begins without any"
    states.end("uid")
    assert states.at("uid", "a") == {}


def test_the_oldest_goes_first_if_it_is_too_much() -> None:
    states = CycleStates(3 * (VALUE_BYTES + 1))
    for uid in "abcd":
        states.begin(uid, values(key=b"1"))
    assert [bool(states.at(uid, "n")) for uid in "abcd"] == [False, True, True, True]
    states.begin("e", values(key=b"1" * 10_000))
    assert not any(states.at(uid, "n") for uid in "abcde")
    states.begin("f", values(key=b"1"))
    assert states.at("f", "n")
