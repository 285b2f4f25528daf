"""Finds the API server and the credentials for it.

A pod's service account is read here: an address, a certificate and a token. Kubeconfigs have many
kinds of credentials, so the Kubernetes client library reads them. Importing that costs up to a
second of processor time and 110 MB, so it is imported only then.
"""

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from yarl import URL

from moorage.errors import ConfigurationError
from moorage.files import load_kubeconfig

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
    return await _of_files(find_kubeconfigs(kubeconfig), context, refresh_interval)


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


def find_kubeconfigs(kubeconfig: Path | None) -> list[Path]:
    """Return the files that kubectl would read.

    Args:
        kubeconfig: The file; None for those of KUBECONFIG, else ~/.kube/config.

    Raises:
        ConfigurationError: There is none of them.
    """
    listed = os.environ.get("KUBECONFIG") or "~/.kube/config"
    named = [kubeconfig] if kubeconfig else filter(None, listed.split(os.pathsep))
    if found := [path for path in (Path(each).expanduser() for each in named) if path.exists()]:
        return found
    raise ConfigurationError(
        f"there is no kubeconfig at {kubeconfig or listed}, and this is not a pod with a service "
        "account; pass --kubeconfig FILE or set KUBECONFIG"
    )


_KINDS = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))


def merged(paths: Iterable[Path]) -> dict[str, Any]:
    """Return kubeconfigs as one, as kubectl does: of what several files have, the first counts.

    The Kubernetes library takes the last file's context, and all paths from the cluster's folder.

    Raises:
        ConfigurationError: One cannot be read, or is no kubeconfig.
    """
    found: dict[str, Any] = {each: [] for each, _ in _KINDS}
    for path in paths:
        document = next(iter(load_kubeconfig(path)), None) or {}
        if not isinstance(document, dict):
            raise ConfigurationError(f"{path} holds a {type(document).__name__}, no Config")
        if context := document.get("current-context"):
            found.setdefault("current-context", context)
        for kind, field in _KINDS:
            names = {each["name"] for each in found[kind]}
            items = document.get(kind) or []
            if not isinstance(items, list) or not all(_is_object(item, field) for item in items):
                raise ConfigurationError(f"{path}: {kind} has what is no {field}")
            for item in items:
                if (name := str(item.get("name", ""))) not in names:
                    names.add(name)
                    fields = _absolute(item.get(field) or {}, path.absolute().parent)
                    found[kind].append({"name": name, field: fields})
    return found


def _is_object(item: object, field: str) -> bool:
    return isinstance(item, dict) and isinstance(item.get(field) or {}, dict)


def _absolute(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a cluster, context or user without what is empty, and with its paths from the root."""
    found = {name: value for name, value in fields.items() if value not in ("", None)}
    for name in {"certificate-authority", "client-certificate", "client-key", "tokenFile"} & {
        *found
    }:
        found[name] = str(folder / str(found[name]))
    if "tokenFile" in found:
        found.pop("token", None)
    plugin = found.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command", "")):
        found["exec"] = plugin | {"command": str(folder / str(plugin["command"]))}
    return found


async def _of_files(
    paths: list[Path], context: str | None, refresh_interval: float
) -> ApiServerAccess:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config_from_dict

    found, files = Configuration(), os.pathsep.join(map(str, paths))
    try:
        loader = await load_kube_config_from_dict(merged(paths), context, found)
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
        return str(found.api_key.get("BearerToken", "")).strip()

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
