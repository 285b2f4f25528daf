"""Moorage beside topolvm-scheduler, gpushare-scheduler-extender, and an extender in FastAPI.

Each peer decides by its own rule, Moorage by the same rule in the per-node form
(`bench/processes/plugins/peers.py`). Both Go extenders are built from a checkout of their
repository, which is no part of this one: `--topolvm` and `--gpushare` name it. Go that does nothing
is asked too: it is the floor, not a peer.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench import report
from bench.edge import REFERENCE, Question, of_go, progress_of, summed_up
from bench.edge import report as report_question
from bench.processes.goprograms import CLIENT, NOTHING
from bench.processes.load import Contender, Load
from bench.processes.objects import peers_pod
from bench.processes.stacks import HOST, Bench, Cluster, Profiles, opened
from bench.report import Results
from cli.up.processes import free_ports
from tools import build

NODES = 1000
"""With more whole nodes a call exceeds the 10 MiB that topolvm-scheduler takes."""

TOPOLVM, GPUSHARE, FASTAPI = "topolvm-scheduler", "gpushare-scheduler-extender", "FastAPI"
TOPOLVM_RULE, GPUSHARE_RULE = "moorage, TopoLVM's rule", "moorage, gpushare's rule"
RULES = Path(__file__).parent / "processes" / "plugins" / "peers.py"
PROFILES: Profiles = {
    TOPOLVM_RULE: (("TopoLVMCapacity",), (("TopoLVMRoom", 1),)),
    GPUSHARE_RULE: (("GpuShare",), ()),
}
"""A profile for each rule; contenders have the same names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """Folders with the repositories of the peers; what is None is not measured."""

    topolvm: Path | None = None
    gpushare: Path | None = None


async def measure(
    checkouts: Checkouts, results: Results, directory: Path, progress: Callable[[str], None]
) -> None:
    """Ask all of them, one after another, on one cluster.

    Raises:
        BuildError: A checkout does not compile.
    """
    async with opened(directory, progress) as bench:
        cluster = await bench.cluster(NODES, 30, peers=True)
        found = await _contenders(bench, cluster, checkouts, results)
        load = Load(await bench.program(CLIENT))
        for question in _questions(found, quick=results.quick):
            job = question.job(cluster, found, peers_pod())
            rounds = await load.run(job, progress_of(question, progress))
            report_question(results, question, [*summed_up(question, rounds)], report.PEERS)


async def _contenders(
    bench: Bench, cluster: Cluster, checkouts: Checkouts, results: Results
) -> Mapping[str, Contender]:
    stack = await bench.moorage(cluster.kubeconfig, PROFILES, RULES)
    found = [of_go(REFERENCE, await bench.go_extender(NOTHING))]
    found += [
        Contender(name, stack.addresses.extender, name, [*stack.pids.values()]) for name in PROFILES
    ]
    if checkouts.topolvm is not None:
        (port,) = free_ports(1)
        program = _built(TOPOLVM, checkouts.topolvm, "./cmd/topolvm-scheduler")
        config = bench.directory / "topolvm.yaml"
        config.write_text(f'listen: "{HOST}:{port}"\ndefault-divisor: 1\n')
        pid = await bench.peer(port, [str(program), f"--config={config}"])
        found.append(
            Contender(TOPOLVM, f"http://{HOST}:{port}", pids=[pid], filter_path="predicate")
        )
    if checkouts.gpushare is not None:
        (port,) = free_ports(1)
        program = _built(GPUSHARE, checkouts.gpushare, "./cmd")
        environment = {"PORT": str(port), "KUBECONFIG": str(cluster.kubeconfig)}
        pid = await bench.peer(port, [str(program)], environment)
        url = f"http://{HOST}:{port}/gpushare-scheduler"
        found.append(Contender(GPUSHARE, url, pids=[pid], prioritize_path=""))
    if find_spec("fastapi") is None:
        results.notes.append("FastAPI is not installed: `make bench-peers` does it")
    else:
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "bench.processes.fastapi_extender", str(port), cluster.api]
        pid = await bench.peer(port, command)
        found.append(Contender(FASTAPI, f"http://{HOST}:{port}", pids=[pid]))
    return {contender.name: contender for contender in found}


def _questions(found: Mapping[str, Contender], *, quick: bool) -> list[Question]:
    rounds, seconds = (20, 20) if quick else (100, 60)

    def question(names: list[str], *, whole: bool) -> Question:
        return Question(
            nodes=NODES,
            contenders=[name for name in names if name in found],
            rounds=rounds,
            seconds=seconds,
            whole=whole,
        )

    return [
        question([REFERENCE, TOPOLVM, FASTAPI, TOPOLVM_RULE], whole=True),
        question([REFERENCE, FASTAPI, TOPOLVM_RULE], whole=False),
        question([REFERENCE, GPUSHARE, GPUSHARE_RULE], whole=False),
    ]


def _built(name: str, checkout: Path, package: str) -> Path:
    """Build and return the program of a package of a checkout.

    Raises:
        BuildError: It does not compile.
    """
    target = build.cache_root() / "peers" / name
    build.provide(build.Tool(module=checkout.resolve(), package=package), target)
    return target
