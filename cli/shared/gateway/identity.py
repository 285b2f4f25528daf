"""How a caller is known at the admin port, and how the gateway proves to be one."""

import base64
import ssl
import tempfile
from pathlib import Path

import msgspec

from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.finding import SECONDS
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY, read_certificate
from moorage_host.tls.contexts import client_context

OPERATOR_SECRET = "operator-tls"  # noqa: S105 - a name
"""The Secret of people, as `moorage certs --secrets` and cert-manager write it."""


def context_of(tls: Path | None, ca_file: Path | None) -> ssl.SSLContext:
    """Return what connects with the certificate in a folder, else with none.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    if tls is not None:
        return client_context(read_certificate(tls))
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError too
        raise ConfigurationError(f"cannot use the --ca-file {ca_file}: {error}") from error


async def context_of_secret(client: KubeClient, namespace: str) -> ssl.SSLContext:
    """Return what connects with the operator's certificate in a namespace.

    Raises:
        GatewayError: The Secret may not be read, or there is none.
        ConfigurationError: It cannot be used.
    """
    path = f"/api/v1/namespaces/{namespace}/secrets/{OPERATOR_SECRET}"
    try:
        answer = await client.request("GET", path, timeout=SECONDS)
        data = msgspec.json.decode(answer.check().body).get("data") or {}
    except (KubeError, TimeoutError) as error:
        reason = (error.message if isinstance(error, KubeStatusError) else "") or error
        raise GatewayError(
            "the gateway has certificates: give --ca-file FILE for a bearer token, or --tls DIR, "
            f"an operator's certificate (Secret {namespace}/{OPERATOR_SECRET}: {reason})"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        for name in (CHAIN, KEY, AUTHORITIES):
            if name in data:
                (Path(folder) / name).write_bytes(base64.b64decode(data[name]))
        try:
            return client_context(read_certificate(Path(folder)))
        except ConfigurationError as error:
            text = str(error).replace(folder, f"Secret {namespace}/{OPERATOR_SECRET}")
            raise ConfigurationError(text) from error


def read_token(file: Path) -> str:
    """Return the bearer token in a file.

    Raises:
        ConfigurationError: It cannot be read, or holds none.
    """
    try:
        token = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the --token-file {file}: {error}") from error
    if not token.isprintable() or not token:
        raise ConfigurationError(f"the --token-file {file} holds no token")
    return token
