"""A decision shows who asked, of which nodes, with which code, and how long everything took."""

from pathlib import Path

from tests.gateway.decisions.test_lists import NAMES, decide, deciding


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
