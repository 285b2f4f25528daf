"""The article's extender image_score, answered by Moorage at the extender's own path."""

from pathlib import Path
from typing import Any

import pytest

from tools.inprocess.gateway import filter_service, gateway, pod, ready, scorer_service

PATH = "my_scheduler_extension/my_new_priorities/image_score"
POLICY = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
scoreScale: 10
profiles:
- schedulerName: extended-scheduler
  plugins: {multiPoint: {enabled: [{name: ImageScore}]}}
"""


def node(name: str, *images: str) -> dict[str, Any]:
    held = [{"names": [image], "sizeBytes": 50_000_000} for image in images]
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": amounts, "images": held}}


@pytest.mark.parametrize("path", [PATH, "prioritize/ImageScore"])
async def test_the_article_s_call_gets_the_article_s_scores(tmp_path: Path, path: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    nginx = [{"name": "nginx", "image": "nginx:1.7.9"}]
    items = [
        node("master-node", "k8s.gcr.io/pause:3.1"),
        node("worker-node1", "nginx:1.15"),
        node("worker-node2", "docker.io/library/nginx:1.7.9"),
    ]
    body = {
        "Pod": pod(schedulerName="extended-scheduler", containers=nginx),
        "Nodes": {"metadata": {}, "items": items},
        "NodeNames": None,
    }
    async with (
        filter_service() as filters,
        scorer_service() as scorer,
        gateway(
            tmp_path,
            filters=filters,
            scorer=scorer,
            config=tmp_path / "policy.yaml",
            extender_alias=(f"/{PATH}=prioritize/ImageScore",),
            omit_zero_scores=False,
        ) as process,
    ):
        await ready(process)
        status, answer = await process.call(path, body)
    assert status == 200
    assert answer == [
        {"Host": "master-node", "Score": 0},
        {"Host": "worker-node1", "Score": 0},
        {"Host": "worker-node2", "Score": 1},
    ]
