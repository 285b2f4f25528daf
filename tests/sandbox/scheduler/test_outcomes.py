"""What is written about attempts."""

from pathlib import Path

import yaml
from structlog.testing import capture_logs

from moorage.models import Metadata, Pod
from moorage_host.kube import connect
from sandbox.apiserver.server import kubeconfig
from sandbox.scheduler.outcomes import WAITING, Recorder


async def test_it_is_said_once_that_events_are_dropped(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:1", "nobody")))
    client = await connect(file)
    pod = Pod(metadata=Metadata(name="web", uid="u"))
    try:
        recorder = Recorder(client)
        with capture_logs() as logs:
            for _ in range(WAITING):
                recorder.failed(pod, "no node")
            assert logs == []
            recorder.failed(pod, "no node")
            recorder.failed(pod, "no node")
    finally:
        await client.close()
    assert [each["event"].partition(":")[0] for each in logs] == ["Events are dropped"]
