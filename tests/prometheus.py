"""A real Prometheus that scrapes exporters whose counters a test drives."""

import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.needs import needed


@dataclass
class Counters:
    """What the exporters of the nodes show, by node: a start and what is added each second."""

    bytes: Mapping[str, tuple[float, float]]
    idle_share: Mapping[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def page(self, node: str) -> str:
        """Return the exporter's page of a node.

        Each sample has its time: a scrape that is late on a busy machine changes no rate, and one
        that fails does not make the node unknown.
        """
        elapsed, now = time.monotonic() - self.began, f"{time.time() * 1000:.0f}"
        start, each_second = self.bytes[node]
        idle = self.idle_share.get(node, 1)
        received = start + each_second * elapsed
        samples = {
            'node_network_receive_bytes_total{device="eth0"}': received,
            'node_network_receive_bytes_total{device="lo"}': elapsed * 1e9,
            'node_network_transmit_bytes_total{device="eth0"}': 0,
            f'node_uname_info{{nodename="{node}"}}': 1,
            'node_cpu_seconds_total{cpu="0",mode="idle"}': elapsed * idle,
            'node_cpu_seconds_total{cpu="0",mode="user"}': elapsed * (1 - idle),
            "node_memory_MemTotal_bytes": 1000,
            "node_memory_MemAvailable_bytes": 1000 * idle,
        }
        return "".join(f"{series} {value} {now}\n" for series, value in samples.items())

    def pods(self) -> str:
        """Return what kube-state-metrics would say of the exporters' pods."""
        return "".join(
            f'kube_pod_info{{namespace="monitoring",pod="exporter-{node}",node="{node}"}} 1\n'
            for node in self.bytes
        )


@dataclass
class Prometheus:
    """A running Prometheus."""

    address: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(20)


@contextmanager
def exporters(counters: Counters) -> Iterator[str]:
    """Serve the pages of all nodes; yield host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = counters.pods() if self.path == "/pods" else counters.page(self.path[1:])
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


@contextmanager
def prometheus(
    folder: Path, exporter: str, jobs: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]
) -> Iterator["Prometheus"]:
    """Run Prometheus, scraping every half second.

    It takes some five seconds from its start to the first scrape.

    Args:
        folder: Where it may write.
        exporter: Host and port of what it scrapes.
        jobs: By name the targets: a path, and labels.
    """
    scrapes = [_scrape(job, exporter, targets) for job, targets in jobs.items()]
    with scraping(folder, scrapes) as running:
        yield running


@contextmanager
def scraping(
    folder: Path, scrapes: Sequence[Mapping[str, Any]], *options: str, rules: Sequence[Path] = ()
) -> Iterator["Prometheus"]:
    """Run Prometheus with `scrape_configs`, rules and further options, as `prometheus` does."""
    program = needed("prometheus")
    config = folder / "prometheus.yml"
    intervals = {"scrape_interval": "500ms", "scrape_timeout": "400ms"}
    intervals |= {"evaluation_interval": "1s"}
    files = [str(file) for file in rules]
    document = {"global": intervals, "scrape_configs": scrapes, "rule_files": files}
    config.write_text(json.dumps(document))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    command += options
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    running = Prometheus(address=f"http://127.0.0.1:{port}", process=process)
    try:
        yield running
    finally:
        running.kill()


def wait_for_samples(address: str, query: str, count: int, seconds: float = 30) -> None:
    """Wait until a query has as many samples; fail if it does not."""
    end = time.monotonic() + seconds
    while (found := _count(address, query)) != count:
        assert time.monotonic() < end, f"{query} has {found} samples, not {count}"
        time.sleep(0.05)


def _count(address: str, query: str) -> int:
    try:
        url = f"{address}/api/v1/query?{urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return len(json.load(answer)["data"]["result"])
    except urllib.error.HTTPError as error:
        if error.code != 503:  # it is starting
            raise
        return -1
    except OSError:
        return -1


def _scrape(
    job: str, exporter: str, targets: Sequence[tuple[str, Mapping[str, str]]]
) -> dict[str, Any]:
    """Take the path from a label, so that each node can have its own."""
    return {
        "job_name": job,
        "honor_labels": True,
        "static_configs": [
            {"targets": [exporter], "labels": {"__metrics_path__": path, **labels}}
            for path, labels in targets
        ],
    }
