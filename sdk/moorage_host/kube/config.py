"""Finds the API server and the credentials for it.

Importing kubernetes_asyncio takes seconds and 110 MB, so it is imported here, when a process really
connects.
"""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from moorage.errors import ConfigurationError
from moorage_host.kube.client import KubeClient

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient, Configuration
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_log = structlog.get_logger()


async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    refresh_interval: float = 60.0,
) -> KubeClient:
    """Return a client for the API server; no request is sent yet.

    Args:
        kubeconfig: A kubeconfig file. Without one, the pod's service account is used if there is
            one, else the files of the environment variable KUBECONFIG, else ~/.kube/config.
        context: A context of the kubeconfig instead of its current one.
        service_account: The folder with a service account's token and ca.crt.
        refresh_interval: How often to look for a new token in a kubeconfig's files and plugins, in
            seconds. A service account's is looked for every minute.

    Raises:
        ConfigurationError: There is no configuration, or it is broken.
    """
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    # Callers bound what they send; a limit here would let a burst of writes starve a watch.
    configuration.connection_pool_maxsize = 0
    if kubeconfig is None and context is None and _is_in_cluster(service_account):
        _load_service_account(configuration, service_account)
    else:
        loader = await _load_files(configuration, kubeconfig, context)
        _keep_fresh(configuration, loader, refresh_interval)
    return KubeClient(_open(configuration))


def _is_in_cluster(service_account: Path) -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and (service_account / "token").exists()


def _load_service_account(configuration: "Configuration", folder: Path) -> None:
    from kubernetes_asyncio.config import load_incluster_config

    try:
        load_incluster_config(
            configuration,
            token_filename=str(folder / "token"),
            cert_filename=str(folder / "ca.crt"),
        )
    except Exception as error:
        raise ConfigurationError(
            f"cannot use the service account in {folder}: {error}; "
            "mount a service account token or pass --kubeconfig"
        ) from error


async def _load_files(
    configuration: "Configuration", kubeconfig: Path | None, context: str | None
) -> "KubeConfigLoader":
    from kubernetes_asyncio.config import load_kube_config

    files = _files(kubeconfig)
    try:
        return await load_kube_config(
            config_file=files,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:
        raise ConfigurationError(
            f"cannot use the kubeconfig {files}: {error or type(error).__name__}; "
            "try `kubectl cluster-info` with the same file and context"
        ) from error


def _files(kubeconfig: Path | None) -> str:
    text = str(kubeconfig or os.environ.get("KUBECONFIG") or Path("~/.kube/config"))
    paths = [Path(part).expanduser() for part in text.split(os.pathsep) if part]
    if any(path.is_file() for path in paths):
        return os.pathsep.join(map(str, paths))
    raise ConfigurationError(
        f"there is no kubeconfig at {text}, and this is not a pod with a service account; "
        "pass --kubeconfig FILE or set KUBECONFIG"
    )


def _keep_fresh(
    configuration: "Configuration", loader: "KubeConfigLoader", interval: float
) -> None:
    """Renew tokens from files and credential plugins; the library only renews service accounts'."""
    user = loader._user
    if user is not None and "exec" in user and not hasattr(loader, "exec_plugin_expiry"):
        return  # A credential without an end is kept until the process ends, as kubectl does.
    due = time.monotonic() + interval

    async def refresh(configuration: "Configuration") -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + interval
        try:
            await loader.load_and_set(configuration)
        except Exception as error:  # noqa: BLE001 (the old token may still be good; the API server decides)
            _log.warning("Credentials were not renewed", error=str(error))

    configuration.refresh_api_key_hook = refresh


def _open(configuration: "Configuration") -> "ApiClient":
    from kubernetes_asyncio.client import ApiClient

    try:
        api = ApiClient(configuration)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use the certificates for {configuration.host}: {error}; "
            "check certificate-authority, client-certificate and client-key"
        ) from error
    api.user_agent = "moorage"
    return api
