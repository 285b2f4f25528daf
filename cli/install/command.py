"""The command `moorage install`."""

import re
import tempfile
from pathlib import Path

import click

from cli.install.bundle import CONTROL_PLANE, NAMESPACE, components, layouts
from cli.shared.failures import clear_failures

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--layout",
    type=click.Choice(layouts()),
    default="second-scheduler",
    show_default=True,
    help="How kube-scheduler and the gateway are put together.",
)
@click.option(
    "--with",
    "parts",
    type=click.Choice(components()),
    multiple=True,
    help="What to install too; repeatable.",
)
@click.option("--image", default="", help="The image of Moorage, such as NAME:TAG or NAME@DIGEST.")
@click.option("--policy", type=FILE, help="A MoorageConfiguration instead of the shipped one.")
@click.option(
    "--plugin",
    "plugins",
    type=FILE,
    multiple=True,
    help="A Python file with plugins; repeatable. Without --policy one profile enables them all.",
)
@click.option(
    "--kubernetes",
    metavar="VERSION",
    default="",
    help="The version of kube-scheduler, such as v1.36.1; by default the cluster's own.",
)
@click.option(
    "--gateway-address",
    metavar="ADDRESS",
    default="",
    help="A fixed address of the gateway's Service, from the cluster's range, for the layouts "
    "control-plane and control-plane-strict.  [default: 10.96.88.88]",
)
@click.option(
    "--certs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("certs"),
    show_default=True,
    help="Where certificates are kept if cert-manager does not make them; see `moorage certs`.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds to wait until everything is ready; 0 does not wait.",
)
@click.option("--kubeconfig", type=FILE, help="As for kubectl.")
@click.option("--context", help="As for kubectl.")
@click.option(
    "--print", "only_print", is_flag=True, help="Print the manifests, and change nothing."
)
def install(
    *,
    layout: str,
    parts: tuple[str, ...],
    image: str,
    policy: Path | None,
    plugins: tuple[Path, ...],
    kubernetes: str,
    gateway_address: str,
    certs: Path,
    timeout: float,
    kubeconfig: Path | None,
    context: str | None,
    only_print: bool,
) -> None:
    """Install Moorage in the namespace moorage, or bring an installation up to date.

    It renders the kustomize files that come with Moorage, applies them server-side, makes the
    certificates, and waits until all is ready. kube-scheduler's configuration gets the extender
    entries that the policy needs.
    """
    if gateway_address and not layout.startswith(CONTROL_PLANE):
        raise click.UsageError("--gateway-address is for the layouts control-plane...")
    if gateway_address and not re.fullmatch(r"[0-9]+(\.[0-9]+){3}", gateway_address):
        raise click.BadParameter("must be an IPv4 address", param_hint="--gateway-address")
    with clear_failures():
        from cli.config.policies import choose_policy
        from cli.install.bundle import Bundle, write
        from cli.install.kubectl import find_kubectl

        kubectl = find_kubectl(kubeconfig, context)
        chosen = choose_policy(policy, plugins) if policy or plugins else None
        for note in chosen.notes if chosen else ():
            click.echo(f"Note: {note}", err=True)
        bundle = Bundle(
            layout=layout,
            components=tuple(dict.fromkeys(parts)),
            image=image,
            kubernetes=kubernetes or ("" if only_print else kubectl.server_version()),
            address=gateway_address,
            policy=chosen.resolved if chosen else None,
            policy_text=(policy.read_text() if policy else chosen.text) if chosen else "",
            plugins=plugins,
            kinds=chosen.kinds if chosen else (),
        )
        with tempfile.TemporaryDirectory() as folder:
            write(bundle, Path(folder))
            manifests = kubectl.kustomize(Path(folder))
        if only_print:
            click.echo(manifests, nl=False)
            return
        from cli.install.applying import apply

        apply(kubectl, bundle, manifests, certs=certs, seconds=timeout)
        click.echo(f"Installed in the namespace {NAMESPACE}. Check it: moorage doctor", err=True)
