"""What users give to several commands, such as `--plugin PATH=WEIGHT` and pods."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from cli.shared.gateway.options import FILE, current_namespace
from moorage.errors import ConfigurationError

NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
"""A name of a Kubernetes object."""

KINDS = ("pod", "pods", "po")
"""What may stand before the name of a pod, as for kubectl."""

MAX_WEIGHT = 2**31 - 1  # that of `moorage.plugin.values`, which would import numpy


@dataclass(frozen=True, slots=True)
class GivenPlugin:
    """A Python file or folder with plugins, and the weight of its score plugins; 0 if not given."""

    path: Path
    weight: int = 0


class GivenPluginType(click.ParamType[GivenPlugin]):
    """Reads PATH or PATH=WEIGHT."""

    name = "PATH[=WEIGHT]"

    def convert(
        self, value: str | GivenPlugin, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenPlugin:
        """Return what is given; the path must exist."""
        if isinstance(value, GivenPlugin):
            return value
        path, equals, weight = value.rpartition("=")
        if not equals or Path(value).exists():
            path, weight = value, ""
        elif not (weight.isascii() and weight.isdecimal() and 0 < int(weight) <= MAX_WEIGHT):
            self.fail(f"{value}: the weight is no integer from 1 to {MAX_WEIGHT}", param, ctx)
        if not Path(path).exists():
            self.fail(f"{path} does not exist", param, ctx)
        return GivenPlugin(Path(path), int(weight or 0))


def weights_of(given: Iterable[GivenPlugin]) -> Mapping[Path, int]:
    """Return the weights that are given, by path."""
    return {each.path: each.weight for each in given if each.weight}


def namespace_and_name(
    pod: str, namespace: str, kubeconfig: Path | None, context: str
) -> tuple[str, str]:
    """Return namespace and name of a pod, given as POD, pod/POD or NAMESPACE/POD.

    Args:
        pod: What was given.
        namespace: Where it is if *pod* does not say so; "" for that of the kubeconfig's context.
        kubeconfig: Which kubeconfig.
        context: Which context of it; "" is the current one.

    Raises:
        ConfigurationError: It has another form.
    """
    form = re.fullmatch(f"((?P<before>{NAME})/)?(?P<name>{NAME})", pod)
    if form is None:
        raise ConfigurationError(
            f"{pod!r} is no pod: write POD, pod/POD or NAMESPACE/POD, such as default/web"
        )
    if form["before"] not in (None, *KINDS):
        namespace = form["before"]
    namespace = namespace or current_namespace(kubeconfig, context)
    if not re.fullmatch(NAME, namespace):
        raise ConfigurationError(f"{namespace!r} is no namespace")
    return namespace, form["name"]


namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    help="The pod's namespace. Without it: that of the kubeconfig's context, else default.",
)
"""The option of commands about a pod; "" is that of the kubeconfig."""

plugins_option = click.option(
    "--plugin",
    "plugins",
    type=GivenPluginType(),
    multiple=True,
    help="A Python file or folder with plugins; repeatable. Without --config they are enabled, "
    "with =WEIGHT score plugins with this weight.",
)

scheduler_config_option = click.option(
    "--scheduler-config",
    type=FILE,
    help="The KubeSchedulerConfiguration, with one extender.  [default: the shipped one]",
)
