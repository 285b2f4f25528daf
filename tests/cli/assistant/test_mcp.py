"""`moorage mcp` answers a real client over stdio, about a running cluster."""

import asyncio
import json
import signal
import sys
from asyncio import gather
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
import yaml
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from cli.assistant.bounds import ANSWER_BYTES
from cli.assistant.server import AT_ONCE, WAITING, Tools
from cli.shared.gateway.options import GatewayOptions
from sandbox.apiserver import ApiServer
from tests.cli.support import MOORAGE, PATIENCE, ROOT, invoked, moorage, pod, ran
from tools.inprocess.api import Api
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import gateway

DEMO = ROOT / "deploy" / "demo"
NOWHERE = "http://127.0.0.1:9"
CROWD = 100
"""Pods that wait in vain: what is to say of them is longer than an answer."""


class Question(NamedTuple):
    """What somebody asks, the tool that answers, and what its answer has, by path."""

    text: str
    tool: str
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]


QUESTIONS = (
    Question(
        "Why is misplaced pending?",
        "explain_pod",
        {"pod": "misplaced"},
        {"place": "is pending", "reason": "none of 3 nodes suits it: 2 nodeGroup of pod ..."},
    ),
    Question(
        "Why did notebook go there?",
        "explain_pod",
        {"pod": "notebook", "namespace": "default"},
        {"node": "demo-m03", "reason": "Moorage prefers demo-m03 to demo, 46 to 0: Image..."},
    ),
    Question(
        "Why is hello-1-a not on demo?",
        "explain_pod",
        {"pod": "default/hello-1-a", "node": "demo"},
        {"place": "is not on demo but on demo-m02", "reason": "NodeGroup rejected it: node ..."},
    ),
    Question(
        "What is pending in default?",
        "pending_pods",
        {"namespace": "default"},
        {"pods": 1, "items.0.pod": "default/misplaced", "items.0.next.0": "change the pod or ..."},
    ),
    Question(
        "What is pending in all?",
        "pending_pods",
        {},
        {"pods": CROWD + 1, "truncated.0.list": "items", "truncated.0.of": CROWD + 1},
    ),
    Question(
        "Which nodes refuse misplaced, and who says so?",
        "what_if",
        {"pod": "misplaced"},
        {"before.feasible": 0, "before.rejected.0.names": ["demo-m02", "demo-m03"]},
    ),
    Question(
        "Where would notebook be without ImageLocality?",
        "what_if",
        {"pod": "notebook", "weights": {"ImageLocality": 0}},
        {"before.best": "demo-m03", "after.best": "", "after.words.0": "kube-scheduler chose ..."},
    ),
    Question(
        "And hello-1-a without NodeGroup?",
        "what_if",
        {"pod": "hello-1-a", "off": ["NodeGroup"]},
        {"before.feasible": 1, "after.feasible": 3},
    ),
    Question(
        "Would two nodes like demo-m02 help hello-1-a?",
        "what_if",
        {"pod": "hello-1-a", "more_nodes": 2, "like": "demo-m02"},
        {"before.nodes": 3, "after.nodes": 5, "before.feasible": 1, "after.feasible": 3},
    ),
    Question(
        "Which rules are active?",
        "active_policy",
        {},
        {"profiles": ["moorage"], "plugins.0.name": "NodeGroup", "warnings": []},
    ),
    Question("Is the installation right?", "check_installation", {}, {"counts.problem": 0}),
    Question(
        "A pod that is not there", "explain_pod", {"pod": "x"}, {"": "there is no pod def..."}
    ),
    Question("No name", "explain_pod", {"pod": "a/b/c"}, {"": "'a/b/c' is no pod: write POD, ..."}),
    Question("No pod at all", "explain_pod", {}, {"": "Error executing tool explain_pod: 1 va..."}),
    Question(
        "No such node",
        "explain_pod",
        {"pod": "notebook", "node": "m9"},
        {"": "there is no node m9..."},
    ),
    Question(
        "No such plugin",
        "what_if",
        {"pod": "notebook", "weights": {"Nope": 1}},
        {"": "the profile has no such plugin Nope; it has ImageLocality"},
    ),
    Question(
        "Too heavy",
        "what_if",
        {"pod": "notebook", "weights": {"ImageLocality": 2000}},
        {"": "2000 is not a weight from 0 to 1000"},
    ),
    Question("No such tool", "delete_pod", {"pod": "notebook"}, {"": "Unknown tool: delete_pod"}),
)


COMMANDS = {
    "explain misplaced": "Why is misplaced pending?",
    "explain --pending --namespace=default": "What is pending in default?",
    "doctor": "Is the installation right?",
}
"""What prints the same as a question is answered with."""


class Asked(NamedTuple):
    """What the server offered and answered, and what the commands print about the same."""

    tools: Mapping[str, Any]
    answers: Mapping[str, CallToolResult]
    printed: Mapping[str, Any]


def client(*options: object) -> Client:
    server = StdioServerParameters(command=str(MOORAGE), args=["mcp", *map(str, options)])
    return Client(stdio_client(server))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asked]:
    """Ask all questions, in one session, of the demonstration with a crowd of pending pods."""
    home = tmp_path_factory.mktemp("asked")
    spec = {"schedulerName": "moorage", "nodeSelector": {"no": "node"}}
    crowd = (pod(f"crowd-{number}", "crowd", **spec) for number in range(CROWD))
    demo = list(yaml.safe_load_all((DEMO / "pods.yaml").read_text()))
    (home / "pods.yaml").write_text(yaml.safe_dump_all([*filter(None, demo), *crowd]))
    given = (
        f"--nodes={DEMO / 'nodes.yaml'}",
        "--pods=pods.yaml",
        f"--config={DEMO / 'policy.yaml'}",
    )
    async with moorage(home, "up", *given) as command:
        line = await command.line("export KUBECONFIG=")
        await command.line("The cluster stays up")
        reached = f"--kubeconfig={line.partition('=')[2]}"
        async with client(reached) as session:
            tools = {each.name: each for each in (await session.list_tools()).tools}
            asked = (session.call_tool(each.tool, dict(each.arguments)) for each in QUESTIONS)
            answers = dict(
                zip((each.text for each in QUESTIONS), await gather(*asked), strict=True)
            )
        ends = await gather(*(ran(*each.split(), "--output=json", reached) for each in COMMANDS))
        printed = [json.loads(text) for _, text in ends]
        yield Asked(tools, answers, dict(zip(COMMANDS, printed, strict=True)))


def text_of(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step) if step.isdigit() else step]
    return value


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.text)
def test_a_question_is_answered(asked: Asked, question: Question) -> None:
    answer = asked.answers[question.text]
    text, fails = text_of(answer), "" in question.expected
    assert answer.is_error is fails
    assert len(text) <= ANSWER_BYTES
    content = text if fails else answer.structured_content
    assert fails or json.loads(text) == content
    for path, expected in question.expected.items():
        found = at(content, path) if path else content
        if isinstance(expected, str) and expected.endswith("..."):
            assert found.startswith(expected.removesuffix("...")), found
        else:
            assert found == expected


@pytest.mark.parametrize(("command", "question"), COMMANDS.items())
def test_the_answer_is_the_object_that_the_command_prints(
    asked: Asked, command: str, question: str
) -> None:
    assert asked.answers[question].structured_content == asked.printed[command]


def test_all_tools_only_read_and_say_what_their_arguments_are(asked: Asked) -> None:
    assert {each.tool for each in QUESTIONS} - {"delete_pod"} == set(asked.tools)
    for tool in asked.tools.values():
        assert tool.annotations.read_only_hint
        for argument in tool.input_schema["properties"]:
            assert f"\n    {argument}: " in tool.description


async def test_a_gateway_may_end_meanwhile_and_the_command_says_so(tmp_path: Path) -> None:
    async with AsyncExitStack() as gateways:
        running = await gateways.enter_async_context(gateway(tmp_path))
        tools = Tools(GatewayOptions(admin=running.admin))
        assert not (await tools.pending_pods()).is_error
        await gateways.aclose()
        for answer in (await tools.active_policy(), await tools.pending_pods()):
            assert answer.is_error
            assert text_of(answer).startswith("the gateway's admin port cannot be asked (")
            assert text_of(answer).endswith(
                "give --admin, which is https:// if the gateway has certificates"
            )


async def test_a_caller_whom_the_gateway_does_not_know_learns_nothing(tmp_path: Path) -> None:
    tls = write_folder(tmp_path, authority(), "moorage-gateway", "moorage-operator", "127.0.0.1")
    stranger = write_folder(tmp_path / "x", authority(), "moorage-operator")
    async with gateway(tmp_path, tls=tls) as running:
        for folder, knows in ((tls, True), (stranger, False)):
            tools = Tools(GatewayOptions(admin=running.admin, tls=folder))
            answer = await tools.pending_pods()
            assert answer.is_error is not knows
        assert "certificate" in text_of(answer)


async def test_without_a_gateway_a_pod_is_explained_by_its_events_and_the_rest_says_so(
    tmp_path: Path,
) -> None:
    async with ApiServer() as api:
        config = tmp_path / "config"
        await asyncio.to_thread(config.write_text, api.kubeconfig())
        state = Api(api)
        state.pod("web", schedulerName="other")
        red = "\x1b[31mred\x9b2J\u202e"
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        state.set_status("web", phase="Pending", conditions=[{**condition, "message": red}])
        tools = Tools(GatewayOptions(kubeconfig=config))
        explained = await tools.explain_pod("web")
        assert not explained.is_error
        assert explained.structured_content
        assert explained.structured_content["without"].startswith("the gateway: no gateway runs in")
        assert red not in text_of(explained)
        assert text_of(explained).isprintable()
        assert r"\u001b[31mred\u009b2J\u202e" in explained.structured_content["reason"]
        for answer in (await tools.pending_pods(), await tools.active_policy()):
            assert answer.is_error
            assert text_of(answer) == (
                "no gateway runs in namespace moorage: give --admin URL, or --gateway "
                "NAMESPACE[/POD]"
            )
        assert text_of(await tools.explain_pod("none")) == "there is no pod default/none"


async def test_more_questions_than_may_wait_are_refused() -> None:
    tools = Tools(GatewayOptions(admin=NOWHERE))
    answers = await gather(*(tools.pending_pods() for _ in range(AT_ONCE + WAITING + 2)))
    refused = [each for each in answers if text_of(each).endswith("ask again later")]
    assert len(refused) == 2


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}

GARBAGE = (
    b"\n",
    b"\xff\xfe\x00\n",
    b"no JSON\n",
    b"[]\n",
    b'{"jsonrpc": "2.0"}\n',
    b'{"jsonrpc": "2.0", "id": 7, "method": "no/such"}\n',
    b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": 3}}\n',
    b"[" * 100_000 + b"\n",
    b'{"a": "' + b"x" * (5 << 20) + b'"}\n',
)


async def started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(MOORAGE, "mcp", f"--admin={NOWHERE}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )


async def said(process: asyncio.subprocess.Process, number: int, method: str, **params: Any) -> Any:
    """Call a method; return the answer to this call."""
    assert process.stdin
    assert process.stdout
    call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(call).encode() + b"\n")
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = json.loads(await process.stdout.readline())
            if answer.get("id") == number:
                return answer


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """Wait for its end; return its exit code and what it wrote on stderr."""
    async with asyncio.timeout(PATIENCE):
        _, errors = await process.communicate()
        return await process.wait(), errors.decode()


async def test_garbage_on_stdin_is_passed_over_and_the_end_of_stdin_ends_it() -> None:
    process = await started()
    assert process.stdin
    for line in GARBAGE:
        process.stdin.write(line)
    await said(process, 100, "initialize", **HELLO)
    process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    for line in GARBAGE:
        process.stdin.write(line)
    assert len((await said(process, 101, "tools/list"))["result"]["tools"]) == 5
    process.stdin.close()
    assert await ended(process) == (0, "")


async def test_ctrl_c_ends_it() -> None:
    process = await started()
    await said(process, 1, "initialize", **HELLO)
    process.send_signal(signal.SIGINT)
    assert await ended(process) == (-signal.SIGINT, "")


def test_without_the_extra_one_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cli.assistant.server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    result = invoked("mcp", f"--admin={NOWHERE}")
    assert result.exit_code == 1
    assert result.output == (
        "moorage: `moorage mcp` needs the extra mcp: pip install 'moorage[mcp]', in a clone "
        "'.[mcp]'\n"
    )
