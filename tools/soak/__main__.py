"""Runs Moorage under steady churn, and fails if a process keeps growing: `make soak MINUTES=30`."""

import argparse
import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.up.processes import Processes
from cli.up.processes.stack import StackOptions, start_stack
from moorage_host.kube import connect
from tools.soak.churn import Churn
from tools.soak.samples import DESCRIPTORS, Sample, Usage, trend, usage

OURS = ("gateway", "filter", "scorer-1", "binder")
OTHERS = ("kube-scheduler", "api-server")
"""Those of the sandbox are shown, but have no limit."""

POLICY = Path(__file__).parent / "policy.yaml"
SMALL = ("--decision-pods=1000", "--kept-changes=5000")
"""Tables of the gateway whose bounds are not reached within the warm-up get smaller ones."""

EVERY = 5.0
"""Seconds between samples."""

CALM_SECONDS = 150.0
"""How long after the churn idle connections may stay open: clients close them after 90 s."""


async def run(minutes: float, churn: Churn, processes: Processes) -> tuple[list[Sample], Sample]:
    """Sample under churn until the time is over; then once more when connections are closed."""

    def used() -> dict[str, Usage]:
        return {name: usage(processes.named(name).pid) for name in (*OURS, *OTHERS)}

    work = asyncio.create_task(churn.run())
    start, samples = time.monotonic(), list[Sample]()
    try:
        while (passed := (time.monotonic() - start) / 60) < minutes:
            samples.append(Sample(minutes=passed, usage=used()))
            await asyncio.wait([work], timeout=EVERY)
            if work.done():
                work.result()
    finally:
        work.cancel()
    begin, calm, end = samples[0].usage, used(), time.monotonic() + CALM_SECONDS
    while time.monotonic() < end and any(
        calm[name].descriptors > begin[name].descriptors + DESCRIPTORS for name in OURS
    ):
        await asyncio.sleep(EVERY)
        calm = used()
    return samples, Sample(minutes=minutes, usage=calm)


async def main() -> int:
    """Return whether a process grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="of which a third does not count"
    )
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rate", type=float, default=15.0, help="pods a second")
    parser.add_argument("--slope", type=float, default=24.0, help="most MiB an hour")
    options = parser.parse_args()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-soak-")))
        processes = Processes(lambda _: None)
        stack.push_async_callback(processes.stop)
        addresses = await start_stack(
            StackOptions(
                directory=directory,
                kubeconfig=None,
                config=POLICY,
                profiles=("moorage",),
                plugins=(),
                gateway_options=SMALL,
            ),
            processes,
        )
        client = await connect(addresses.kubeconfig)
        stack.push_async_callback(client.close)
        churn = Churn(client=client, nodes=options.nodes, rate=options.rate)
        await churn.fill()
        samples, calm = await run(options.minutes, churn, processes)
    trends = [
        trend(name, samples, options.minutes / 3, calm.usage[name]) for name in (*OURS, *OTHERS)
    ]
    print(f"{churn.created} pods, {churn.failed} requests refused", *trends, sep="\n")
    wrong = [each for each in trends if each.name in OURS and each.grows(options.slope)]
    for each in wrong:
        print(f"{each.name} keeps growing")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
