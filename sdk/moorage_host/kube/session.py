"""The HTTP session of `moorage_host.kube.client`: the library's connections, without its detours.

The library's own session asks a thread for the environment's proxies, and another one for
`~/.netrc`, before each request; that takes longer than the request itself.
"""

from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.helpers import get_env_proxy_for_url
from yarl import URL

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient, Configuration

READ_AHEAD = 1 << 21
"""Bytes of an answer that may wait to be read; lines of a watch are up to 1.5 MB long."""


def open_session(api: "ApiClient") -> aiohttp.ClientSession:
    """Return a session on the library's connections, which stay the library's to close."""
    return aiohttp.ClientSession(
        connector=api.rest_client.pool_manager.connector,
        connector_owner=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_AHEAD,
    )


def proxy_options(configuration: "Configuration") -> dict[str, Any]:
    """Return what all requests need to get there: proxy, and the name to expect of the server.

    A proxy comes from the kubeconfig, else from the environment (HTTPS_PROXY, NO_PROXY and so on).
    """
    options = {
        "proxy": configuration.proxy,
        "proxy_headers": configuration.proxy_headers,
        "server_hostname": configuration.tls_server_name,
    }
    given = {name: value for name, value in options.items() if value}
    return given if configuration.proxy else {**_environment_proxy(configuration.host), **given}


def _environment_proxy(host: str) -> dict[str, Any]:
    try:
        proxy, auth = get_env_proxy_for_url(URL(host))
    except LookupError:
        return {}
    return {"proxy": proxy.with_user(auth.login).with_password(auth.password) if auth else proxy}
