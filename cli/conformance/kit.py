"""The plugin for pytest that gives the checks their extender, from the options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from cli.conformance.requests import RECORDED_NODES, Requests
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import VERBS, ExtenderConfig, ExtenderTLS, Verb, load_configuration

CHECKS = Path(__file__).with_name("checks.py")

KIT = pytest.StashKey["Kit"]()

OF_CYCLES: tuple[Verb, ...] = ("filter", "prioritize", "preempt")

DEFAULT_VERBS = ",".join(OF_CYCLES)


@dataclass(frozen=True, kw_only=True)
class Kit:
    """What is checked.

    Attributes:
        requests: What writes requests for the extender.
        slow: Whether checks that take minutes run too.
    """

    requests: Requests
    slow: bool = False

    def run(self, *arguments: str, plugins: tuple[object, ...] = ()) -> int:
        """Run the checks; return the exit code: 0, 1 if kube-scheduler would be hurt, else 2.

        *arguments* are pytest's. Neither its configuration nor other plugins than *plugins* take
        part.
        """
        alone = ("-c", os.devnull, f"--rootdir={CHECKS.parent}", "--disable-plugin-autoload")
        # To look for exceptions in destructors, the latter collects garbage ten times.
        without = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
        shown = ("--no-header", "--capture=no", "--import-mode=importlib", "-W", "default")
        words = [str(CHECKS), *alone, *without, *shown, *arguments]
        code = pytest.main(words, plugins=[self, *plugins])
        return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else 2

    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the fixtures find this."""
        config.stash[KIT] = self


def kit_of(given: Mapping[str, Any]) -> Kit:
    """Return the plugin that the options of the command lead to.

    Raises:
        ConfigurationError: One cannot be used.
    """
    about = ("url", "config", "verbs", "bind", "tls")
    requests = Requests(
        config=extender(**{name: given[name] for name in about}),
        nodes=given["nodes"] or RECORDED_NODES,
        scheduler_name=given["scheduler_name"],
        best_score=given["score_scale"],
    )
    return Kit(requests=requests, slow=given["slow"])


def extender(
    url: str | None = None,
    config: Path | None = None,
    *,
    verbs: str | None = None,
    bind: bool = False,
    tls: Path | None = None,
) -> ExtenderConfig:
    """Return the extender to check.

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
        found = load_configuration(config).extenders
        fitting = [each for each in found if url in (None, each.url_prefix)]
        # Moorage's binds may have an entry of their own.
        entries = [each for each in fitting if any(map(each.verb, OF_CYCLES))] or fitting
        if len(entries) != 1 or len({each.url_prefix for each in fitting}) != 1:
            known = ", ".join(dict.fromkeys(each.url_prefix for each in found)) or "none"
            raise ConfigurationError(f"{config}: give the URL of one of its extenders: {known}")
        bind_verb = next((each.bind_verb for each in fitting if each.bind_verb), "")
        entry = replace(entries[0], bind_verb=bind_verb)
    elif url is not None:
        entry = ExtenderConfig(url_prefix=url, node_cache_capable=True, weight=1)
        verbs = verbs or DEFAULT_VERBS
    else:
        raise ConfigurationError("give the URL of an extender, or --config FILE")
    scheme = _scheme(entry.url_prefix)
    if verbs is not None:
        paths = {f"{verb}_verb": "" for verb in VERBS} | _paths(verbs)
        entry = replace(entry, **paths)
    entry = replace(entry, bind_verb=(entry.bind_verb or "bind") if bind else "")
    if tls is None:
        return entry
    if scheme != "https":
        raise ConfigurationError(f"--tls is for https://, not {entry.url_prefix}")
    files = {"cert_file": "tls.crt", "key_file": "tls.key", "ca_file": "ca.crt"}
    given = {field: str(tls / name) for field, name in files.items()}
    return replace(
        entry, enable_https=True, tls_config=replace(entry.tls_config or ExtenderTLS(), **given)
    )


def _scheme(prefix: str) -> str:
    """Return the scheme of an extender's URL; raises ConfigurationError for what is none."""
    try:
        url = urlsplit(prefix)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return url.scheme
    except ValueError:  # the port is no number
        pass
    raise ConfigurationError(
        f"{prefix!r} is no URL of an extender: it begins with http:// or https://, then come a "
        "host and perhaps a port"
    )


def _paths(text: str) -> dict[str, str]:
    """Read "filter=/filter,bind=bind"; raises ConfigurationError if it has another form."""
    paths: dict[str, str] = {}
    for part in text.split(","):
        verb, equals, path = part.strip().partition("=")
        if verb not in VERBS or (equals and not path.strip("/")):
            raise ConfigurationError(
                f"--verbs: {part.strip()!r} is none of {', '.join(VERBS)} with a path, such as "
                "filter=/filter"
            )
        paths[f"{verb}_verb"] = path.lstrip("/") or verb
    return paths
