"""Runs Moorage under steady churn, and fails if a process keeps growing: `make soak MINUTES=30`."""

import argparse
import asyncio
import statistics
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from cli.up.processes import Processes
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from moorage_host.kube import connect
from tools.soak.churn import Churn
from tools.soak.samples import Sample, Trend, Usage, table, trend, usage, write_csv

OURS = ("gateway", "filter", "scorer-1", "binder")
OTHERS = ("kube-scheduler", "api-server")
"""Those of the sandbox are shown, but have no limit."""

POLICY = Path(__file__).parent / "policy.yaml"
SMALL = ("--decision-pods=1000", "--kept-changes=5000")
"""Tables of the gateway whose bounds are not reached within the warm-up get smaller ones."""

PROBES = 10
DESCRIPTORS, THREADS = 8, 4
"""How many more a process may have in the end than at the begin."""

CALM_SECONDS = 150.0
"""How long after the churn idle connections may stay open: clients close them after 90 s."""


@dataclass(slots=True, kw_only=True)
class Soak:
    """One run."""

    minutes: float
    warm_up: float
    every: float
    addresses: Addresses
    processes: Processes
    churn: Churn
    out: Path
    samples: list[Sample] = field(default_factory=list)
    calm: dict[str, Usage] = field(default_factory=dict)

    async def run(self) -> None:
        """Sample under churn until the time is over; then let idle connections be closed."""
        work = asyncio.create_task(self.churn.run())
        start = time.monotonic()
        try:
            async with aiohttp.ClientSession() as session:
                while (minutes := (time.monotonic() - start) / 60) < self.minutes:
                    self.samples.append(await self._sample(minutes, session))
                    write_csv(self.samples, (*OURS, *OTHERS), self.out)
                    await asyncio.wait([work], timeout=self.every)
                    if work.done():
                        work.result()
        finally:
            work.cancel()
        end = time.monotonic() + CALM_SECONDS
        self.calm = self._usage()
        while time.monotonic() < end and self._has_more_descriptors():
            await asyncio.sleep(self.every)
            self.calm = self._usage()

    def _has_more_descriptors(self) -> bool:
        begin = self.samples[0].usage
        return any(
            self.calm[name].descriptors > begin[name].descriptors + DESCRIPTORS for name in OURS
        )

    def _usage(self) -> dict[str, Usage]:
        return {name: usage(self.processes.named(name).pid) for name in (*OURS, *OTHERS)}

    async def _sample(self, minutes: float, session: aiohttp.ClientSession) -> Sample:
        times = sorted([await self._probe(session) for _ in range(PROBES)])
        return Sample(
            minutes=minutes,
            usage=self._usage(),
            p50=statistics.median(times),
            p99=times[-1],
            pods=self.churn.created,
        )

    async def _probe(self, session: aiohttp.ClientSession) -> float:
        """Return the milliseconds of a filter call for a pod that is never bound."""
        pod = {
            "metadata": {"name": "probe", "namespace": "default", "uid": "probe"},
            "spec": {"schedulerName": "moorage", "containers": [{"name": "c"}]},
        }
        names = list(self.churn.node_names)
        start = time.perf_counter()
        body = {"Pod": pod, "Nodes": None, "NodeNames": names}
        async with session.post(f"{self.addresses.extender}/filter", json=body) as response:
            await response.read()
        return 1000 * (time.perf_counter() - start)


async def main() -> int:
    """Return whether a process grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, help="minutes that do not count; default: a third")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rate", type=float, default=15.0, help="pods a second")
    parser.add_argument("--lifetime", type=float, default=30.0, help="seconds that a pod lives")
    parser.add_argument("--slope", type=float, default=24.0, help="most MiB an hour")
    parser.add_argument("--out", type=Path, default=Path("tools/soak/out"))
    options = parser.parse_args()
    warm_up = options.minutes / 3 if options.warm_up is None else options.warm_up
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
        churn = Churn(
            client=client, nodes=options.nodes, rate=options.rate, lifetime=options.lifetime
        )
        await churn.fill()
        soak = Soak(
            minutes=options.minutes,
            warm_up=warm_up,
            every=options.every,
            addresses=addresses,
            processes=processes,
            churn=churn,
            out=options.out,
        )
        await soak.run()
    trends = [trend(name, soak.samples, warm_up, soak.calm[name]) for name in (*OURS, *OTHERS)]
    print(f"{options.minutes:g} min, {churn.created} pods ({options.rate:g}/s), ", end="")
    print(f"{options.nodes} nodes, {churn.failed} requests refused; after {warm_up:g} min:")
    print(table(trends))
    wrong = [each for each in trends if each.name in OURS and _grows(each, options.slope)]
    for each in wrong:
        print(f"{each.name} keeps growing: {each.slope:+.1f} MiB/h; see {options.out}/soak.csv")
    return bool(wrong)


def _grows(one: Trend, most: float) -> bool:
    return one.slope > most or one.descriptors > DESCRIPTORS or one.threads > THREADS


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
