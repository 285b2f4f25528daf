"""Verbs at further paths: kube-scheduler's configuration may stay as it was."""

from collections.abc import Sequence

import pytest

from gateway.cycle import Cycle
from moorage.errors import ConfigurationError
from tools.inprocess.edge import ScriptedCycles, go_request, names_args, serving

ARTICLE = "/my_scheduler_extension/my_new_priorities/image_score"


async def score_by_plugin(call: Cycle) -> Sequence[int]:
    return [len(call.plugin)] * len(call.nodes.names)


@pytest.mark.parametrize("end", ["", "/"])
async def test_one_plugin_answers_at_the_path_of_an_alias(end: str) -> None:
    cycles = ScriptedCycles(on_prioritize=score_by_plugin)
    alias = (f"{ARTICLE}=prioritize/ImageScore",)
    async with serving(cycles, extender_alias=alias) as edge:
        answer = await edge.post(ARTICLE + end, names_args("a"))
        assert (answer.status, answer.json) == (200, [{"Host": "a", "Score": len("ImageScore")}])
        await edge.post("/prioritize/Other", names_args("a"))
        await edge.post("/prioritize", names_args("a"))
    assert [call.plugin for call in cycles.scheduling] == ["ImageScore", "Other", ""]


async def test_a_verb_itself_can_have_an_alias_outside_of_the_prefix() -> None:
    cycles = ScriptedCycles()
    aliases = ("/old/predicates=filter", "/old/bind=bind")
    async with serving(cycles, extender_prefix="new", extender_alias=aliases) as edge:
        assert (await edge.post("/old/predicates", names_args("a"))).json["NodeNames"] == ["a"]
        binding = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
        assert (await edge.post("/old/bind", binding)).json == {"Error": ""}
        assert (await edge.post("/new/filter", names_args("a"))).status == 200
        assert (await edge.post("/old/predicates/NodeName", names_args("a"))).status == 404
    assert [call.plugin for call in cycles.scheduling] == ["", ""]
    assert [call.node for call in cycles.binds] == ["a"]


async def test_an_alias_takes_posts_only() -> None:
    async with serving(extender_alias=("/old=preempt",)) as edge, edge.connect() as wire:
        await wire.send(go_request("GET", "/old", b""))
        answer = await wire.answer()
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("aliases", "problem"),
    [
        (("/a",), "write PATH=VERB or PATH=VERB/PLUGIN"),
        (("a=filter",), "PATH must be like"),
        (("/=filter",), "PATH must be like"),
        (("/{x}=filter",), "PATH must be like"),
        (("/a?b=filter",), "PATH must be like"),
        (("/a=priorities/X",), "there is no verb `priorities`, did you mean `prioritize`?"),
        (("/a=zzz",), "there is no verb `zzz`: known are filter, prioritize, preempt, bind"),
        (("/a=bind/X",), "PLUGIN must be one name, after filter or prioritize"),
        (("/a=filter/",), "PLUGIN must be one name, after filter or prioritize"),
        (("/a=filter", "/a/=bind"), "/a is the path of another alias already"),
        (("/v/filter=bind",), "/v/filter is the path of a verb already"),
        (("/v/filter/NodeName=prioritize/X",), "/v/filter is the path of a verb already"),
    ],
)
async def test_a_bad_alias_is_refused_at_the_start(aliases: tuple[str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        async with serving(extender_prefix="/v/", extender_alias=aliases):
            pass
    assert str(caught.value).startswith(f'--extender-alias is "{aliases[-1]}": ')
    assert problem in str(caught.value)
