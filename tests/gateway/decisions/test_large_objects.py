"""Objects as large and as odd as an API server takes: what is answered about them stays short."""

import io
from pathlib import Path

import msgspec
import pytest

from cli.assistant.bounds import ANSWER_BYTES, fitted
from cli.decisions.explain_output import show
from gateway.decisions.explanation import Explanation
from tests.cli.shared.test_printable import HOSTILE, is_fit
from tools.inprocess.api import Object
from tools.inprocess.gateway import plane
from tools.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: InTree}]}
"""

AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "110"}
ODD = HOSTILE.replace("\ud800", "")  # no JSON has this one
NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "labels": {f"label-{i}": "x" * 60 for i in range(10_000)},
        "annotations": {"long": "y" * (200 << 10), "odd": ODD},
    },
    "status": {
        "allocatable": AMOUNTS,
        "capacity": AMOUNTS,
        "images": [{"names": [f"r/{i}:{'t' * 80}"], "sizeBytes": 10**8} for i in range(5000)],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": ODD, "message": ODD * 1000},
            {"type": ODD + "k" * 20_000, "status": "True"},
        ],
    },
}
CONDITION = {"type": "PodScheduled", "status": "False", "reason": ODD, "message": ODD * 30_000}

LONGEST = {
    "/nodes": 2 << 10,
    "/nodes/large-0": 1 << 20,  # has the labels
    "/map": 64 << 10,
    "/decisions": 2 << 10,
    "/decisions/pending": 64 << 10,
    "/decisions/default/large": 64 << 10,
    "/decisions/default/large?node=large-0": 64 << 10,
    "/simulate/default/large": 64 << 10,
    "/plugins": 64 << 10,
    "/policy": 64 << 10,
    "/replicas": 64 << 10,
    "/readyz": 2 << 10,
}
"""How many bytes an answer may have."""

ASSISTANT_ASKS = ("/decisions/", "/simulate/", "/policy")


async def test_answers_about_large_and_odd_objects_are_short_and_fit_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["large-0", "large-1", "large-2"]
    async with plane(tmp_path, policy=POLICY, nodes=()) as running:
        for name in names:
            metadata = {**NODE["metadata"], "name": name}
            running.api.create("/api/v1/nodes", {**NODE, "metadata": metadata})
        env = [{"name": f"E{i}", "value": "w" * 150} for i in range(9000)]
        container = {"name": "c", "image": "i", "env": env}
        running.api.pod("large", schedulerName="moorage", containers=[container])
        running.api.set_status("large", conditions=[CONDITION])
        pod = running.api.read_pod("large")

        async def is_seen() -> bool:
            _, nodes = await running.get("/nodes")
            _, pods = await running.get("/decisions/pending")
            return (nodes["total"], pods["pods"]) == (len(names), 1)

        await until(is_seen)
        called = io.BytesIO(msgspec.json.encode({"Pod": pod, "NodeNames": names}))
        async with running.session.post(
            f"{running.url}/filter", data=called, headers={"Content-Type": "application/json"}
        ) as response:
            assert (await response.json())["NodeNames"] == names
        for path, longest in LONGEST.items():
            async with running.session.get(f"{running.admin}{path}") as response:
                assert response.status == 200, path
                text = await response.read()
            assert len(text) <= longest, path
            if not path.startswith(ASSISTANT_ASKS):
                continue
            content, shown = fitted(msgspec.json.decode(text))
            assert len(shown) <= ANSWER_BYTES
            assert is_fit(shown)
            if path.startswith("/decisions/default/"):
                show(msgspec.convert(content, Explanation), "text")
        assert is_fit(capsys.readouterr().out)
