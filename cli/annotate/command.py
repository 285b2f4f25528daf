"""The command `moorage annotate`."""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.shared.failures import clear_failures
from moorage.units.durations import format_duration, parse_duration

if TYPE_CHECKING:
    from moorage.measurements import PrometheusSettings

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

PRESETS = (
    "node",
    "kubernetes-node",
    "node-uname-info",
    "kube-pod-info",
    "instance-name",
    "instance-ip",
)
"""Those of `moorage.measurements`, written again so that help is there at once."""

ADDRESS = r"https?://[^/@?#\s]+(/[^?#\s]*)?"
LABEL = r"([a-zA-Z_][a-zA-Z0-9_]*)?"
PREFIX = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?"


class Duration(click.ParamType[float, Any]):
    """A time such as 500ms or 1m30s, in seconds afterwards."""

    name = "duration"

    def __init__(self, least: float) -> None:
        self._least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds."""
        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self._least:
            self.fail(f"{value} is less than {format_duration(self._least)}", param, ctx)
        return seconds


def matching(pattern: str, example: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a callback that refuses text of another form."""

    def check(_: click.Context, __: click.Parameter, value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise click.BadParameter(f"{value!r} is not of the form {example}")

    return check


@click.command()
@click.option(
    "--prometheus",
    metavar="URL",
    required=True,
    callback=matching(ADDRESS, "http://prometheus-server.monitoring"),
    help="Where Prometheus is: the URL up to, without, /api/v1.",
)
@click.option(
    "--preset",
    default="node",
    type=click.Choice(PRESETS),
    show_default=True,
    help="How Prometheus names nodes.",
)
@click.option(
    "--node-label",
    metavar="LABEL",
    default="",
    callback=matching(LABEL, "kubernetes_host"),
    help="The label that names the node, instead of a preset's.",
)
@click.option(
    "--node-format",
    metavar="TEXT",
    default="{name}",
    show_default=True,
    help="What --node-label holds, with {name}, {hostname} or {internalIP}.",
)
@click.option("--bearer-token-file", type=FILE, help="A token for Prometheus; read each time.")
@click.option("--username", default="", help="For basic authentication at Prometheus.")
@click.option("--password-file", type=FILE, help="The password for it; read each time.")
@click.option("--ca-file", type=FILE, help="Certificates to trust instead of the system's, in PEM.")
@click.option("--insecure-skip-verify", is_flag=True, help="Accept any certificate of Prometheus.")
@click.option(
    "--timeout",
    default="10s",
    type=Duration(0.001),
    show_default=True,
    help="How long a query may take.",
)
@click.option(
    "--max-answer-bytes",
    default=32 * 1024 * 1024,
    type=click.IntRange(1024),
    show_default=True,
    help="The longest answer of Prometheus that is read.",
)
@click.option(
    "--window",
    default="15m",
    type=Duration(1),
    show_default=True,
    help="The time over which mean and deviation are taken.",
)
@click.option(
    "--prefix",
    default="",
    callback=matching(PREFIX, "example.com/"),
    help="What stands before the names of annotations: annotationPrefix of the plugins.",
)
@click.option(
    "--threshold",
    metavar="PERCENT",
    default=1.0,
    type=click.FloatRange(0, 100),
    show_default=True,
    help="Write nodes whose values changed by more than this share of what they have allocatable.",
)
@click.option(
    "--refresh",
    default="5m",
    type=Duration(0),
    show_default=True,
    help="Write nodes whose annotations are as old, changed or not; some when 50 % as old, so "
    "that they take turns. Keep it, with --interval, well below annotationMaxAge of the plugins.",
)
@click.option("--kubeconfig", type=FILE, help="How to reach the cluster. Without it: the pod's "
              "service account, else KUBECONFIG, else ~/.kube/config.")  # fmt: skip
@click.option(
    "--concurrency",
    default=8,
    type=click.IntRange(1, 256),
    show_default=True,
    help="How many nodes are written at the same time.",
)
@click.option(
    "--retries",
    default=4,
    type=click.IntRange(0, 20),
    show_default=True,
    help="How often a request to the API server is sent again after 409, 429, 5xx or silence.",
)
@click.option(
    "--request-timeout",
    default="10s",
    type=Duration(0.1),
    show_default=True,
    help="How long one request to the API server may take.",
)
@click.option(
    "--interval",
    default="1m",
    type=Duration(0.1),
    show_default=True,
    help="How often to do it.",
)
@click.option("--once", is_flag=True, help="Do it once, show the result and end.")
@click.option("--dry-run", is_flag=True, help="As --once, but write nothing.")
@click.option(
    "--admin-host",
    default="0.0.0.0",  # noqa: S104
    show_default=True,
    help="Address of the admin server.",
)
@click.option(
    "--admin-port",
    default=9090,
    type=click.IntRange(0, 65535),
    show_default=True,
    help="Port of the admin server (/livez, /readyz, /metrics); 0: a free one.",
)
@click.option(
    "--tls",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with tls.crt, tls.key and ca.crt for the admin server.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Let the admin server use plain text beyond loopback: everybody on the network may then "
    "read the metrics.",
)
@click.option(
    "--log-level",
    default="info",
    type=click.Choice(("debug", "info", "warning", "error")),
    show_default=True,
    help="Least severe events that are logged.",
)
@click.option(
    "--log-format",
    default="auto",
    type=click.Choice(("auto", "json", "text")),
    show_default=True,
    help="Form of the log on stderr; auto is text on a terminal and JSON elsewhere.",
)
def annotate(**given: Any) -> None:
    """Write how busy nodes are, from Prometheus, into annotations that plugins read.

    Nodes that Prometheus does not measure keep the annotations that they have; load-measured-at
    shows how old these are. It goes on until SIGTERM or Ctrl-C unless --once or --dry-run is given.

    Exit codes: 0 when all is well, 1 when Prometheus or the API server fails or, with --once, a
    node could not be written.
    """
    with clear_failures():
        from cli.annotate.options import AnnotateOptions
        from cli.annotate.serving import annotate_once, annotate_until_told
        from cli.shared.screen import Screen

        options = AnnotateOptions(prometheus=_prometheus_settings(given), **given)
        if options.once or options.dry_run:
            sys.exit(asyncio.run(annotate_once(options, Screen())))
        asyncio.run(annotate_until_told(options))


def _prometheus_settings(given: dict[str, Any]) -> "PrometheusSettings":
    """Take out of *given* what is about Prometheus.

    Raises:
        click.UsageError: Options do not go together.
    """
    from moorage.measurements import PrometheusSettings

    given["address"] = given.pop("prometheus")
    given["timeout"] = format_duration(given["timeout"])
    for name in ("bearer_token_file", "password_file", "ca_file"):
        given[name] = str(given[name] or "")
    own = PrometheusSettings.__struct_fields__
    settings = {name: given.pop(name) for name in own if name in given and name not in _OURS}
    try:
        return PrometheusSettings(**settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


_OURS = ("interval",)
"""Options that are called as settings of sources in plugins, which ask by themselves."""
