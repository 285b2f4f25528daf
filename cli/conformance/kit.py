"""Runs the checks with pytest: of which extenders, severities, what is skipped, and a summary."""

import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from cli.conformance.findings import Finding, Severity, merged
from cli.conformance.probe import Probe
from cli.conformance.requests import Requests
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import TLS, VERBS, ExtenderConfig, load_configuration

CHECKS = Path(__file__).with_name("checks.py")

STYLE = "style"

KIT = pytest.StashKey["Kit"]()


@dataclass(kw_only=True)
class Kit:
    """A plugin for pytest: what is checked, and then what was found.

    Attributes:
        requests: What writes requests for each extender.
        slow: Whether checks that take minutes run too.
        found: What was found, by check; checks that found nothing are left out.
        skipped: Why checks did not run.
        sent: How many requests were sent, by verb.
    """

    requests: Sequence[Requests]
    slow: bool = False
    found: dict[str, list[Finding]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)

    def run(self, *arguments: str) -> int:
        """Run the checks; return the exit code: 0, 1 if kube-scheduler would be hurt, else 2.

        *arguments* are pytest's. Neither its configuration nor other plugins of whoever runs this
        take part.
        """
        alone = ("-c", os.devnull, f"--rootdir={CHECKS.parent}", "--disable-plugin-autoload")
        # To look for exceptions in destructors, the latter collects garbage ten times.
        without = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
        shown = ("--no-header", "--capture=no", "--import-mode=importlib")
        code = pytest.main([str(CHECKS), *alone, *without, *shown, *arguments], plugins=[self])
        return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else 2

    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the fixtures find this."""
        config.stash[KIT] = self

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each check once for each extender."""
        if "probe" in metafunc.fixturenames and len(self.requests) > 1:
            ids = [each.config.url_prefix for each in self.requests]
            metafunc.parametrize("probe", self.requests, indirect=True, ids=ids, scope="session")

    def begin(self, probe: Probe, check: str) -> None:
        """Begin a check; skip it if it does not concern the extender, or takes long."""
        probe.check = check
        verb = next((verb for verb in VERBS if check.startswith(f"{verb}-")), None)
        if verb and not probe.offers(verb):
            why = "asked for with --bind only" if verb == "bind" else f"no {verb} verb"
        elif check == "http-not-managed" and not probe.requests.resource:
            why = "no managedResources"
        elif check == "http-idle" and not self.slow:
            why = "asked for with --slow only"
        else:
            return
        self.skipped[check] = why
        pytest.skip(why)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Generator[None, object, object]:
        """Fail a check with what it found; style is no failure."""
        result = yield
        probe = item.funcargs.get("probe")
        if not isinstance(probe, Probe):  # a test of somebody else
            return result
        found = merged(probe.findings.pop(probe.check, []))
        if found:
            self.found.setdefault(probe.check, []).extend(found)
            item.user_properties.append(("severity", str(found[0].severity)))
            text = "\n".join(map(str, found))
            if found[0].severity is not Severity.STYLE:
                pytest.fail(text, pytrace=False)
            item.add_report_section("call", STYLE, text)
        return result

    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, Mapping[str, bool]]] | None:
        """Show the severity in place of "passed" and "failed"."""
        severity = dict(getattr(report, "user_properties", ())).get("severity")
        if report.when != "call" or severity is None:
            return None
        if severity == Severity.STYLE:
            return STYLE, "y", ("STYLE", {"yellow": True})
        return "failed", "F", str(severity).upper()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what is style, and the sums."""
        for report in terminalreporter.getreports(STYLE):
            terminalreporter.write_line("")
            terminalreporter.write_line(dict(report.sections)[f"Captured {STYLE} call"])
        for each in self.requests:
            mode = "names" if each.config.node_cache_capable else "whole nodes"
            terminalreporter.write_line(f"{each.config.url_prefix}: with {mode}")
        counts = Counter(found[0].severity for found in self.found.values())
        sums = [f"{counts[severity]} {severity}" for severity in Severity if counts[severity]]
        requests = ", ".join(f"{count} {verb}" for verb, count in self.sent.items())
        terminalreporter.write_line(f"{', '.join(sums) or 'nothing found'}; sent {requests}")


def check_of(item: pytest.Function) -> str:
    """Return the name of the check that a test is."""
    parameters: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    if "version" in parameters:
        return f"recorded-{parameters['version']}"
    if "rule" in parameters:
        return str(parameters["rule"])
    return str(item.function.__name__).removeprefix("test_").replace("_", "-")


# ---- which extenders are checked

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
