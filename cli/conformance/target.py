"""Which extender is checked: an entry of kube-scheduler's configuration, or one of options."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from cli.conformance.exchange import VERBS, Verb
from moorage.errors import ConfigurationError
from moorage.units.durations import parse_duration
from sandbox.scheduler.config import TLS, ExtenderConfig, ManagedResource, load_configuration

DEFAULT_VERBS = "filter=filter,prioritize=prioritize,preempt=preempt"
BIND = "bind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says of an extender; None where it says nothing.

    Attributes:
        url: Its URL prefix; of several entries in a configuration, the one that is checked.
        config: A file with a KubeSchedulerConfiguration.
        verbs: Such as "filter=filter,prioritize=prioritize"; a path may begin with "/".
        bind: Whether the bind verb is checked.
        node_cache_capable: Names, not whole nodes.
        resources: The names of managedResources.
        timeout: httpTimeout, such as "5s".
        tls: A folder with a client's certificate.
        ca_file: The authorities that sign the extender's certificate.
        server_name: What that certificate is for, if not for the host of the URL.
    """

    url: str | None = None
    config: Path | None = None
    verbs: str | None = None
    bind: bool = False
    node_cache_capable: bool | None = None
    resources: tuple[str, ...] = ()
    timeout: str | None = None
    tls: Path | None = None
    ca_file: Path | None = None
    server_name: str = ""


def extenders(options: Options) -> list[ExtenderConfig]:
    """Return the extenders to check.

    Raises:
        ConfigurationError: There is none, or an option cannot be used.
    """
    if options.config is None:
        if options.url is None:
            raise ConfigurationError("give the URL of an extender, or --config FILE")
        made = [ExtenderConfig(url_prefix=options.url, node_cache_capable=True, weight=1)]
    else:
        configured = load_configuration(options.config).extenders
        made = [each for each in configured if options.url in (None, each.url_prefix)]
        if not made:
            which = f" with the urlPrefix {options.url}" if options.url else ""
            raise ConfigurationError(f"{options.config}: there is no extender{which}")
    changed = [_with(each, options) for each in made]
    for each in changed:
        _check(each)
    return changed


def _with(entry: ExtenderConfig, options: Options) -> ExtenderConfig:
    """Return an entry as the options change it; without --bind it has no bind verb."""
    changes: dict[str, object] = {}
    if options.verbs is not None or options.config is None:
        verbs = _verbs(options.verbs or DEFAULT_VERBS)
        changes |= {f"{verb}_verb": verbs.get(verb, "") for verb in VERBS}
    if not options.bind:
        changes["bind_verb"] = ""
    elif not (changes.get("bind_verb", entry.bind_verb)):
        changes["bind_verb"] = BIND
    if options.node_cache_capable is not None:
        changes["node_cache_capable"] = options.node_cache_capable
    if options.resources:
        changes["managed_resources"] = tuple(map(ManagedResource, options.resources))
    if options.timeout is not None:
        changes["http_timeout"] = options.timeout
    if tls := _tls(entry, options):
        changes |= {"tls_config": tls, "enable_https": True}
    return msgspec.structs.replace(entry, **changes)


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


def _tls(entry: ExtenderConfig, options: Options) -> TLS | None:
    if not (options.tls or options.ca_file or options.server_name):
        return None
    if not entry.url_prefix.startswith("https://"):
        raise ConfigurationError(
            f"--tls, --ca-file and --server-name are for https://, not {entry.url_prefix}"
        )
    given = entry.tls_config or TLS()
    folder = options.tls
    return TLS(
        server_name=options.server_name or given.server_name,
        cert_file=str(folder / "tls.crt") if folder else given.cert_file,
        key_file=str(folder / "tls.key") if folder else given.key_file,
        ca_file=str(options.ca_file or (folder / "ca.crt" if folder else given.ca_file)),
    )
