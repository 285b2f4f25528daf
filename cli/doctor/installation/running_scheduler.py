"""Reads the configuration that a kube-scheduler runs with, which its file may no longer say.

kube-scheduler answers `/configz` on its secure port, on a static pod's loopback alone, so a port is
forwarded to it. Nobody knows its certificate. A client certificate proves who asks without giving
anything away; a bearer token would be shown to whatever listens there, so without a certificate the
configuration is not read.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec

from cli.doctor.installation.objects import SECONDS
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.forwarding import LOOPBACK, forwarded
from cli.shared.gateway.pods import AdminPort, Object, is_active, name_of, scheduler_in, words_of
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError
from moorage_host.kube_scheduler import KubeSchedulerConfiguration, parse_configuration

SECURE_PORT = 10259
"""Where kube-scheduler listens by default."""


class _Configz(msgspec.Struct):
    componentconfig: msgspec.Raw


async def read_running(
    client: KubeClient, pods: Sequence[Object]
) -> Mapping[str, KubeSchedulerConfiguration]:
    """Return by pod the configurations that may be read; those of others are left out."""
    if client.certificate is None:
        return {}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(*client.certificate)
    active = [pod for pod in pods if is_active(pod)]
    found = await asyncio.gather(*(_read(client, pod, context) for pod in active))
    return {name_of(pod): each for pod, each in zip(active, found, strict=True) if each}


async def _read(
    client: KubeClient, pod: Object, context: ssl.SSLContext
) -> KubeSchedulerConfiguration | None:
    metadata = pod["metadata"]
    where = AdminPort(
        namespace=metadata["namespace"], name=metadata["name"], port=_port(pod), is_secured=True
    )
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with forwarded(client, where) as way, aiohttp.ClientSession(timeout=timeout) as http:
            url = f"https://{LOOPBACK}:{way.port}/configz"
            async with http.get(url, ssl=context, raise_for_status=True) as answer:
                text = msgspec.json.decode(await answer.read(), type=_Configz).componentconfig
        return parse_configuration(bytes(text).decode())
    except (aiohttp.ClientError, ConfigurationError, GatewayError, KubeError, OSError, ValueError):
        return None  # it may not be read, or is of a version that says less


def _port(pod: Object) -> int:
    words = words_of(scheduler_in(pod) or {})
    ports = [word.partition("=")[2] for word in words if word.startswith("--secure-port=")]
    return int(ports[-1]) if ports and ports[-1].isdecimal() else SECURE_PORT
