"""The options of every command that asks a gateway, and what a kubeconfig says instead of them.

The kubeconfig that `moorage up` writes names the gateway's admin port: there the gateway is a
process of this machine and no pod, so the API server cannot lead to it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from moorage.errors import ConfigurationError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

NAMESPACE = "moorage"
"""Where deploy/ installs the gateway."""

EXTENSION = "moorage.io/gateway"
"""The name of the extension of a kubeconfig's cluster, which kubectl keeps and does not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """Where the gateway's admin port is, and how the caller is known there.

    Attributes:
        admin: Its address, http:// or https://; "" to get there through the API server.
        gateway: Through the API server: the namespace of the gateway, or NAMESPACE/POD.
        tls: A folder with an operator's certificate.
        ca_file: Without one, the authorities that sign the gateway's certificate.
        kubeconfig: How to reach the cluster.
        context: A context of the kubeconfig; "" is the current one.
        is_embedded: Whether the address is that of `moorage up`, by its kubeconfig.
    """

    admin: str = ""
    gateway: str = NAMESPACE
    tls: Path | None = None
    ca_file: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""
    is_embedded: bool = False


kubeconfig_option = click.option(
    "--kubeconfig",
    type=FILE,
    help="How to reach the cluster. Without it: KUBECONFIG, else ~/.kube/config.",
)

context_option = click.option(
    "--context",
    default="",
    metavar="NAME",
    help="A context of the kubeconfig instead of the current one.",
)

_OPTIONS = (
    click.option(
        "--admin",
        default="",
        metavar="URL",
        envvar="MOORAGE_ADMIN",
        help="The gateway's admin port, such as http://localhost:9090. Without it the gateway is "
        "reached through the API server, as by kubectl port-forward, or that of `moorage up` with "
        "its kubeconfig.",
    ),
    click.option(
        "--gateway",
        default=NAMESPACE,
        show_default=True,
        metavar="NAMESPACE[/POD]",
        envvar="MOORAGE_GATEWAY",
        help="Without --admin: where the gateway runs. Of several, the one that decides.",
    ),
    click.option(
        "--tls",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="For HTTPS: folder with an operator's tls.crt, tls.key and ca.crt. Without it, and "
        "without --admin, the Secret operator-tls beside the gateway, if you may read it.",
    ),
    click.option(
        "--ca-file",
        type=FILE,
        help="For HTTPS without --tls: ca.crt of the gateway. You then authenticate by the "
        "token of the kubeconfig's user.",
    ),
    kubeconfig_option,
    context_option,
)


def gateway_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as one argument `options`."""

    @wraps(command)
    def called(**given: Any) -> None:
        options = GatewayOptions(
            **{
                each.name: given.pop(each.name)
                for each in fields(GatewayOptions)
                if each.name in given
            }
        )
        if not options.admin and options.gateway == NAMESPACE:
            admin = embedded_admin(options.kubeconfig, options.context)
            options = replace(options, admin=admin, is_embedded=bool(admin))
        command(options=options, **given)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def extension(admin: str) -> dict[str, Any]:
    """Return what a kubeconfig's cluster has about the gateway whose admin port is *admin*."""
    return {"name": EXTENSION, "extension": {"admin": admin}}


def embedded_admin(kubeconfig: Path | None, context: str = "") -> str:
    """Return the admin port that a context of a kubeconfig names; "" if none.

    Args:
        kubeconfig: The file; None for those of KUBECONFIG, else ~/.kube/config.
        context: The context; "" for the current one.
    """
    found, chosen = _chosen(kubeconfig, context)
    cluster = _named(found["clusters"], chosen.get("cluster")).get("cluster", {})
    extensions = cluster.get("extensions")
    named = _named(extensions if isinstance(extensions, list) else [], EXTENSION)
    return str(_object(named.get("extension")).get("admin", ""))


def current_namespace(kubeconfig: Path | None, context: str = "") -> str:
    """Return the namespace of a kubeconfig's context, "default" if it has none."""
    return str(_chosen(kubeconfig, context)[1].get("namespace") or "default")


def _chosen(kubeconfig: Path | None, context: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return kubeconfigs and a context; who connects reports what is wrong with them."""
    from moorage_host.kube.config import find_kubeconfigs, merged

    try:
        found = merged(find_kubeconfigs(kubeconfig))
    except ConfigurationError:
        found = merged([])
    name = context or found.get("current-context")
    return found, _named(found["contexts"], name).get("context", {})


def _named(items: Iterable[Any], name: object) -> dict[str, Any]:
    return next((each for each in map(_object, items) if each.get("name") == name), {})


def _object(value: object) -> dict[str, Any]:
    """Return a part of a kubeconfig, empty if it is malformed."""
    return value if isinstance(value, dict) else {}
