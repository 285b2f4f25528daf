"""Which extender is checked: entries of kube-scheduler's configuration, or one of a URL."""

from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from moorage.errors import ConfigurationError
from sandbox.scheduler.config import TLS, VERBS, ExtenderConfig, load_configuration

DEFAULT_VERBS = "filter,prioritize,preempt"


def extenders(
    url: str | None = None,
    config: Path | None = None,
    *,
    verbs: str | None = None,
    bind: bool = False,
    tls: Path | None = None,
) -> list[ExtenderConfig]:
    """Return the extenders to check.

    Args:
        url: Its URL prefix; of several entries in a configuration, the one that is checked.
        config: A file with a KubeSchedulerConfiguration.
        verbs: Such as "filter=filter,prioritize=prioritize"; a path may begin with "/".
        bind: Whether the bind verb is checked.
        tls: A folder with a client's certificate and the extender's authority.

    Raises:
        ConfigurationError: There is none, or an option cannot be used.
    """
    if config is not None:
        configured = load_configuration(config).extenders
        found = [each for each in configured if url in (None, each.url_prefix)]
        if not found:
            which = f" with the urlPrefix {url}" if url else ""
            raise ConfigurationError(f"{config}: there is no extender{which}")
    elif url is not None:
        found = [ExtenderConfig(url_prefix=url, node_cache_capable=True, weight=1)]
        verbs = verbs or DEFAULT_VERBS
    else:
        raise ConfigurationError("give the URL of an extender, or --config FILE")
    paths = None if verbs is None else _paths(verbs)
    return [_changed(each, paths, bind=bind, tls=tls) for each in found]


def _changed(
    entry: ExtenderConfig, paths: dict[str, str] | None, *, bind: bool, tls: Path | None
) -> ExtenderConfig:
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
    if paths is not None:
        entry = replace(entry, **dict.fromkeys((f"{verb}_verb" for verb in VERBS), ""))
        entry = replace(entry, **{f"{verb}_verb": path for verb, path in paths.items()})
    entry = replace(entry, bind_verb=(entry.bind_verb or "bind") if bind else "")
    if tls is None:
        return entry
    if url.scheme != "https":
        raise ConfigurationError(f"--tls is for https://, not {entry.url_prefix}")
    files = {"cert_file": "tls.crt", "key_file": "tls.key", "ca_file": "ca.crt"}
    given = {field: str(tls / name) for field, name in files.items()}
    return replace(entry, enable_https=True, tls_config=replace(entry.tls_config or TLS(), **given))


def _paths(text: str) -> dict[str, str]:
    """Read "filter=/filter,bind=bind".

    Raises:
        ConfigurationError: It has another form.
    """
    paths: dict[str, str] = {}
    for part in text.split(","):
        verb, equals, path = part.strip().partition("=")
        if verb not in VERBS or (equals and not path.strip("/")):
            raise ConfigurationError(
                f"--verbs: {part.strip()!r} is none of {', '.join(VERBS)} with a path, such as "
                "filter=/filter"
            )
        paths[verb] = path.lstrip("/") or verb
    return paths
