"""Records every request that a real kube-scheduler sends to an extender, for `make test`.

By hand: python -m tools.traffic

The same ten pods come once with node names (nodeCacheCapable) and once with whole nodes. kubectl
creates everything, so that the objects look as those of users. KUBERNETES=1.36 records another
minor version, SCHEDULER=1.30 a kube-scheduler that is older than the API server. Users get the
recordings with `moorage conformance`, so they are compressed, always to the same bytes.
"""

import asyncio
import gzip
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.conformance.recordings import recording_file
from moorage_host.kube import connect
from tools.build import find, find_scheduler, minor_version
from tools.planes.embedded import Object
from tools.planes.real import RealPlane
from tools.traffic.extender import Recorder, serving
from tools.traffic.objects import CLUSTER, FILLERS, FIRST, PREEMPTOR, PROFILE

CHOICE = "SCHEDULER"  # the environment variable that selects the version of kube-scheduler
TIMEOUT = 60.0
MODES = {"names": True, "nodes": False}


async def record() -> None:
    """Write both files."""
    version = os.environ.get(CHOICE) or minor_version()
    with tempfile.TemporaryDirectory() as name:
        plane = RealPlane(Path(name), kube_scheduler=find_scheduler(version))
        try:
            await plane.start()
            await _kubectl(plane, "create", CLUSTER)
            client = await connect(plane.kubeconfig("admin"))
            try:
                for mode, names_only in MODES.items():
                    async with serving(client) as recorder:
                        await _conversation(plane, recorder, names_only=names_only)
                    text = "".join(f"{line}\n" for line in recorder.lines)
                    file = recording_file(f"{version}-{mode}")
                    file.write_bytes(gzip.compress(text.encode(), mtime=0))
            finally:
                await client.close()
        finally:
            await plane.stop()


async def _conversation(plane: RealPlane, recorder: Recorder, *, names_only: bool) -> None:
    """Let a kube-scheduler place all pods in turn."""
    program = plane.scheduler("recorded", _configuration(recorder.url, names_only=names_only))
    await program.start()
    try:
        for pod in FIRST:
            await _place(plane, recorder, pod)
        await _kubectl(plane, "delete", FIRST, "--grace-period=0", "--force")
        for pod in FILLERS:
            await _place(plane, recorder, pod)
        await _place(plane, recorder, PREEMPTOR)
        await _kubectl(plane, "delete", [*FILLERS, PREEMPTOR], "--grace-period=0", "--force")
    finally:
        await program.stop()


async def _place(plane: RealPlane, recorder: Recorder, pod: Object) -> None:
    """Create a pod and wait until the extender has bound it."""
    name = pod["metadata"]["name"]
    await _kubectl(plane, "apply", [pod])

    def is_bound() -> bool:
        last = json.loads(recorder.lines[-1]) if recorder.lines else {"verb": ""}
        return last["verb"] == "bind" and json.loads(last["body"])["PodName"] == name

    await _until(is_bound, f"{name} is not bound")


async def _until(condition: Callable[[], bool], message: str) -> None:
    limit = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > limit:
            raise RuntimeError(f"{message} within {TIMEOUT:g} s")
        await asyncio.sleep(0.05)


async def _kubectl(plane: RealPlane, verb: str, objects: Sequence[Object], *options: str) -> None:
    config = f"--kubeconfig={plane.kubeconfig('admin')}"
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    command = [str(find("kubectl")), config, verb, "-f", "-", *options]
    if verb == "delete":
        command.append("--ignore-not-found")
    run = await asyncio.to_thread(
        subprocess.run, command, input=body, text=True, capture_output=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr}")


def _configuration(url: str, *, names_only: bool) -> Object:
    extender = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": names_only,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": PROFILE}],
        "extenders": [extender],
    }


if __name__ == "__main__":
    asyncio.run(record())
