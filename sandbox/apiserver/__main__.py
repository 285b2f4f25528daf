"""Runs the API server as a process of its own.

python -m sandbox.apiserver --port 0 --kubeconfig-out FILE
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import ConfigurationError
from moorage_host.process.lifecycle import ProcessSettings, announce, process
from moorage_host.settings import parse_settings, setting
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings
from sandbox.controllers import Controllers


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessSettings):
    """The process's options."""

    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(0, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    kubeconfig_out: Path | None = setting(None, "Where to write a kubeconfig for kubectl.")
    run_bound_pods: bool = setting(False, "Play the kubelet: bound pods become Running.")
    run_controllers: bool = setting(
        False, "Make the pods of Deployments, ReplicaSets, StatefulSets and Jobs."
    )
    audit_log: Path | None = setting(
        None,
        "File to which a line is added for each write: an Event of audit.k8s.io/v1, with the body "
        "of Bindings.",
    )
    token_auth_file: Path | None = setting(
        None,
        "File of the accounts that TokenReviews know, as kube-apiserver reads it: a line for each, "
        'token,user,uid,"group,group".',
    )


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    asyncio.run(_serve(parse_settings(Options, "python -m sandbox.apiserver")))


async def _serve(options: Options) -> None:
    settings = Settings(
        host=options.host,
        port=options.port,
        run_bound_pods=options.run_bound_pods,
        audit_log=options.audit_log,
        token_auth_file=options.token_auth_file,
    )
    with process("api-server", options) as stop:
        try:
            await _run(settings, options, stop)
        except OSError as error:
            raise ConfigurationError(
                f"cannot serve on {options.host}:{options.port}: {error}"
            ) from error


async def _run(settings: Settings, options: Options, stop: asyncio.Event) -> None:
    async with ApiServer(settings) as api:
        if options.run_controllers:
            Controllers(api.cluster)
        if options.kubeconfig_out:
            options.kubeconfig_out.write_text(api.kubeconfig())
        announce("serving", service="api-server", api=api.url)
        await stop.wait()


if __name__ == "__main__":
    main()
