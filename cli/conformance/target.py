"""Which extender is checked: an entry of kube-scheduler's configuration, or one of options."""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from cli.conformance.recordings import VERBS, Verb
from moorage.errors import ConfigurationError
from moorage.units.durations import parse_duration
from sandbox.scheduler.config import TLS, ExtenderConfig, ManagedResource, load_configuration

DEFAULT_VERBS = "filter=filter,prioritize=prioritize,preempt=preempt"
BIND = "bind"


def extenders(
    url: str | None = None,
    config: Path | None = None,
    *,
    verbs: str | None = None,
    bind: bool = False,
    node_cache_capable: bool | None = None,
    resources: tuple[str, ...] = (),
    timeout: str | None = None,
    tls: Path | None = None,
    ca_file: Path | None = None,
    server_name: str = "",
) -> list[ExtenderConfig]:
    """Return the extenders to check.

    Args:
        url: Its URL prefix; of several entries in a configuration, the one that is checked.
        config: A file with a KubeSchedulerConfiguration.
        verbs: Such as "filter=filter,prioritize=prioritize"; a path may begin with "/".
        bind: Whether the bind verb is checked.
        node_cache_capable: Names, not whole nodes; None to leave it.
        resources: The names of managedResources.
        timeout: httpTimeout, such as "5s".
        tls: A folder with a client's certificate.
        ca_file: The authorities that sign the extender's certificate.
        server_name: What that certificate is for, if not for the host of the URL.

    Raises:
        ConfigurationError: There is none, or an option cannot be used.
    """
    if config is None:
        if url is None:
            raise ConfigurationError("give the URL of an extender, or --config FILE")
        made = [ExtenderConfig(url_prefix=url, node_cache_capable=True, weight=1)]
    else:
        configured = load_configuration(config).extenders
        made = [each for each in configured if url in (None, each.url_prefix)]
        if not made:
            which = f" with the urlPrefix {url}" if url else ""
            raise ConfigurationError(f"{config}: there is no extender{which}")
    changes: dict[str, object] = {}
    if verbs is not None or config is None:
        given = _verbs(verbs or DEFAULT_VERBS)
        changes |= {f"{verb}_verb": given.get(verb, "") for verb in VERBS}
    if node_cache_capable is not None:
        changes["node_cache_capable"] = node_cache_capable
    if resources:
        changes["managed_resources"] = tuple(map(ManagedResource, resources))
    if timeout is not None:
        changes["http_timeout"] = timeout
    found = []
    for entry in made:
        changed = msgspec.structs.replace(entry, **changes)
        own: dict[str, object] = {"bind_verb": (changed.bind_verb or BIND) if bind else ""}
        if tls or ca_file or server_name:
            own |= {"tls_config": _tls(entry, tls, ca_file, server_name), "enable_https": True}
        found.append(msgspec.structs.replace(changed, **own))
        _check(found[-1])
    return found


def _check(entry: ExtenderConfig) -> None:
    """Raise a ConfigurationError if kube-scheduler could not call the extender at all."""
    try:
        url = urlsplit(entry.url_prefix)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # the port is no number
        is_url = False
    if not is_url:
        raise ConfigurationError(
            f"{entry.url_prefix!r} is no URL of an extender: it begins with http:// or https://, "
            "then come a host and perhaps a port"
        )
    try:
        parse_duration(entry.http_timeout)
    except ValueError as error:
        raise ConfigurationError(f"--timeout: {error}") from error


def _verbs(text: str) -> dict[Verb, str]:
    """Read "filter=/filter,bind=bind".

    Raises:
        ConfigurationError: It has another form.
    """
    verbs: dict[Verb, str] = {}
    for part in text.split(","):
        name, equals, path = part.strip().partition("=")
        verb = next((verb for verb in VERBS if verb == name), None)
        if verb is None or (equals and not path.strip("/")):
            raise ConfigurationError(
                f"--verbs: {part.strip()!r} is none of {', '.join(VERBS)} with a path, such as "
                "filter=/filter"
            )
        verbs[verb] = path.lstrip("/") or verb
    return verbs


def _tls(entry: ExtenderConfig, folder: Path | None, ca_file: Path | None, server_name: str) -> TLS:
    if not entry.url_prefix.startswith("https://"):
        raise ConfigurationError(
            f"--tls, --ca-file and --server-name are for https://, not {entry.url_prefix}"
        )
    given = entry.tls_config or TLS()
    return TLS(
        server_name=server_name or given.server_name,
        cert_file=str(folder / "tls.crt") if folder else given.cert_file,
        key_file=str(folder / "tls.key") if folder else given.key_file,
        ca_file=str(ca_file or (folder / "ca.crt" if folder else given.ca_file)),
    )
