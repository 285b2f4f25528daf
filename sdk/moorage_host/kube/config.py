"""Finds the API server and the credentials for it.

A pod's service account is read here: an address, a certificate and a token. Kubeconfigs have many
kinds of credentials, so the Kubernetes client library reads them. Importing that costs up to a
second of processor time and 110 MB, so it is imported only then.
"""

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from yarl import URL

from moorage.errors import ConfigurationError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

DEFAULT_NAMESPACE = "default"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerAccess:
    """An API server and how to reach it.

    Attributes:
        host: Its URL.
        tls: What it must show, and what is shown to it.
        authorization: Returns the header of that name as of now; "" if there is none.
        options: aiohttp's options of each request: proxy, and the name to expect of the server.
        namespace: That of this process, or of the kubeconfig's context.
        certificate: The files of the client certificate and its key; None without one.
    """

    host: str
    tls: ssl.SSLContext
    authorization: Callable[[], Awaitable[str]]
    options: Mapping[str, Any]
    namespace: str = DEFAULT_NAMESPACE
    certificate: tuple[str, str | None] | None = None


async def find_server(
    kubeconfig: Path | None,
    context: str | None,
    service_account: Path,
    refresh_interval: float,
) -> ApiServerAccess:
    """Return what `moorage_host.kube.connect` connects to, which has the arguments' meaning.

    Raises:
        ConfigurationError: There is no configuration, or it is broken.
    """
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and (service_account / "token").exists()
    if kubeconfig is None and context is None and in_cluster:
        try:
            return _of_service_account(service_account, refresh_interval)
        except (OSError, ValueError, KeyError) as error:
            raise ConfigurationError(
                f"cannot use the service account in {service_account}: {error}; "
                "mount a service account token or pass --kubeconfig"
            ) from error
    return await _of_files(_files(kubeconfig), context, refresh_interval)


def _of_service_account(folder: Path, refresh_interval: float) -> ApiServerAccess:
    host, port = (os.environ[f"KUBERNETES_SERVICE_{each}"] for each in ("HOST", "PORT"))
    token, due = _token(folder), time.monotonic() + refresh_interval

    async def authorization() -> str:
        nonlocal token, due
        if time.monotonic() >= due:
            due = time.monotonic() + refresh_interval
            try:
                token = _token(folder)
            except (OSError, ValueError) as error:
                # The old token may still be good; the API server decides.
                _log.warning("Credentials were not renewed", error=str(error))
        return token

    return ApiServerAccess(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        tls=ssl.create_default_context(cafile=folder / "ca.crt"),
        authorization=authorization,
        options={},
        namespace=_namespace(folder),
    )


def _token(folder: Path) -> str:
    text = (folder / "token").read_text().strip()
    if not text:
        raise ValueError("its token is empty")
    return f"Bearer {text}"


def _namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


def _is_url(text: str) -> bool:
    try:
        url = URL(text)
        return url.scheme in ("http", "https") and bool(url.host) and bool(url.port)
    except ValueError:
        return False


def _files(kubeconfig: Path | None) -> str:
    text = str(kubeconfig or os.environ.get("KUBECONFIG") or Path("~/.kube/config"))
    paths = [Path(part).expanduser() for part in text.split(os.pathsep) if part]
    if any(path.is_file() for path in paths):
        return os.pathsep.join(map(str, paths))
    raise ConfigurationError(
        f"there is no kubeconfig at {text}, and this is not a pod with a service account; "
        "pass --kubeconfig FILE or set KUBECONFIG"
    )


def _check_costs(files: str) -> None:
    """Refuse kubeconfigs that cost too much, before a library reads them that has no limits."""
    from moorage.files import load_kubeconfig

    for path in map(Path, files.split(os.pathsep)):
        if path.is_file():
            for found in load_kubeconfig(path):
                if found is not None and not isinstance(found, dict):
                    raise ConfigurationError(f"{path} holds a {type(found).__name__}, no Config")


async def _of_files(files: str, context: str | None, refresh_interval: float) -> ApiServerAccess:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config

    found = Configuration()
    try:
        _check_costs(files)
        loader = await load_kube_config(
            config_file=files, context=context, client_configuration=found, persist_config=False
        )
    except Exception as error:
        raise ConfigurationError(
            f"cannot use the kubeconfig {files}: {error or type(error).__name__}; "
            "try `kubectl cluster-info` with the same file and context"
        ) from error
    if not _is_url(found.host):
        raise ConfigurationError(
            f"cannot use the kubeconfig {files}: server must be a URL such as "
            f'https://192.0.2.1:6443, got "{found.host}"'
        )
    try:
        tls = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if found.cert_file:
            tls.load_cert_chain(found.cert_file, keyfile=found.key_file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use the certificates for {found.host}: {error}; "
            "check certificate-authority, client-certificate and client-key"
        ) from error
    if not found.verify_ssl:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if found.disable_strict_ssl_verification:
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    user = loader._user
    # A credential without an end is kept until the process ends, as kubectl does.
    lasts = user is not None and "exec" in user and not hasattr(loader, "exec_plugin_expiry")
    due = time.monotonic() + refresh_interval

    async def authorization() -> str:
        nonlocal due
        if not lasts and time.monotonic() >= due:
            due = time.monotonic() + refresh_interval
            try:
                await loader.load_and_set(found)
            except Exception as error:  # noqa: BLE001 - the old token may still be good
                _log.warning("Credentials were not renewed", error=str(error))
        return str(found.api_key.get("BearerToken", ""))

    options = {
        "proxy": found.proxy,
        "proxy_headers": found.proxy_headers,
        "server_hostname": found.tls_server_name,
    }
    return ApiServerAccess(
        host=found.host,
        tls=tls,
        authorization=authorization,
        options={name: value for name, value in options.items() if value},
        namespace=str(loader.current_context["context"].get("namespace") or DEFAULT_NAMESPACE),
        certificate=(found.cert_file, found.key_file) if found.cert_file else None,
    )
