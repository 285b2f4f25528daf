"""What callers by hand do to the edge's latency: `python -m bench.edge.by_hand`.

One caller at the edge filters and ranks 500 nodes for pods that have no equal, alone and then while
eight others call `Filter` or `Score` by hand, all the time.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import msgspec
import numpy as np

from bench.edge.contenders import PLUGIN_FILES
from bench.processes.objects import new_pod, node_name
from bench.processes.policies import policy, profile_name
from bench.processes.stacks import opened
from moorage.v1 import filter_pb2, scorer_pb2, types_pb2
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub
from moorage_host.rpc.channel import connect

NODES = 5000
NAMES = 500
ROUNDS = 150
CALLERS = 8
PROFILE = profile_name("batch", 3)


def pod(name: str) -> Any:
    """Build a pod that differs from all others."""
    made = new_pod()
    made["metadata"] |= {"name": name, "uid": name, "labels": {"app": name}}
    made["spec"] |= {"schedulerName": PROFILE}
    return made


async def edge(url: str, tag: str) -> list[float]:
    """Return the milliseconds of filter and prioritize together, round by round."""
    times = []
    async with aiohttp.ClientSession() as session:
        for number in range(ROUNDS):
            names = [node_name((number * NAMES + i) % NODES) for i in range(NAMES)]
            body = {"Pod": pod(f"{tag}-{number}"), "NodeNames": names}
            start = time.perf_counter()
            async with session.post(f"{url}/filter", json=body) as answer:
                left = (await answer.json(content_type=None))["NodeNames"]
            async with session.post(f"{url}/prioritize", json=body | {"NodeNames": left}) as answer:
                assert len(await answer.json(content_type=None)) == len(left)
            times.append(1000 * (time.perf_counter() - start))
    return times[20:]


async def call(service: str, address: str, count: int) -> None:
    """Call by hand all the time, as so many callers, until killed."""
    content = types_pb2.Pod(json=msgspec.json.encode(pod("by-hand")))
    names = [node_name(i) for i in range(count)]

    async def caller() -> None:
        async with connect(address) as channel:
            while True:
                try:
                    if service == "filter":
                        request = filter_pb2.FilterRequest(pod=content, node_names=names)
                        await FilterServiceStub(channel).Filter(request, timeout=60)
                    else:
                        score = scorer_pb2.ScoreRequest(pod=content, node_names=names)
                        await ScorerServiceStub(channel).Score(score, timeout=60)
                    done["OK"] = done.get("OK", 0) + 1
                except grpc.aio.AioRpcError as error:
                    done[error.code().name] = done.get(error.code().name, 0) + 1
                print(done, flush=True)

    done: dict[str, int] = {}
    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def measure() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        async with opened(Path(directory), lambda _: None) as bench:
            cluster = await bench.cluster(NODES, 4)
            stack = await bench.moorage(
                "moorage", cluster.kubeconfig, policy(), plugins=PLUGIN_FILES
            )
            addresses = stack.addresses.services
            cases = [("quiet", "", 0)]
            for count in (1000, 3000):
                cases += [
                    (f"filter {count}", "filter", count),
                    (f"score {count}", "scorer-1", count),
                ]
            cases.append(("quiet again", "", 0))
            quiet = 0.0
            for title, service, count in cases:
                callers = service and await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "bench.edge.by_hand",
                    service.partition("-")[0],
                    addresses[service],
                    str(count),
                    stdout=asyncio.subprocess.PIPE,
                )
                if callers and callers.stdout:
                    await callers.stdout.readline()
                times = await edge(stack.addresses.extender, title.replace(" ", "-"))
                done = ""
                if callers:
                    callers.kill()
                    done = (await callers.communicate())[0].decode().splitlines()[-1]
                p50, p99 = np.percentile(times, [50, 99])
                quiet = quiet or p99
                print(
                    f"{title:12} p50 {p50:6.1f} ms  p99 {p99:6.1f} ms  {p99 / quiet:.2f} x {done}",
                    flush=True,
                )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(call(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    else:
        asyncio.run(measure())
