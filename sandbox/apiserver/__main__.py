"""Runs the API server as a process of its own.

python -m sandbox.apiserver --port 0 --kubeconfig-out FILE
"""

import asyncio

from moorage.errors import ConfigurationError
from moorage_host.process.lifecycle import announce, process
from moorage_host.settings import parse_settings
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings
from sandbox.controllers import Controllers


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    asyncio.run(_serve(parse_settings(Settings, "python -m moorage_apps sandbox.apiserver")))


async def _serve(settings: Settings) -> None:
    with process("api-server", settings) as stop:
        try:
            async with ApiServer(settings) as api:
                if settings.run_controllers:
                    Controllers(api.cluster)
                if settings.kubeconfig_out:
                    settings.kubeconfig_out.touch(mode=0o600)
                    settings.kubeconfig_out.write_text(api.kubeconfig())
                announce("serving", service="api-server", api=api.url)
                await stop.wait()
        except OSError as error:
            raise ConfigurationError(
                f"cannot serve on {settings.host}:{settings.port}: {error}"
            ) from error


if __name__ == "__main__":
    main()
