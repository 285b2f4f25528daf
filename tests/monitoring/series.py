"""Series of Moorage's metrics for promtool's unit tests, and those of a healthy installation.

Series have a value each minute, in promtool's notation: 0+60x90 grows by 60 each minute, 90 times.
"""

from collections.abc import Mapping

Series = Mapping[str, str]

MINUTES = 119

GATEWAY = 'namespace="moorage",pod="gateway-0"'
TIMEOUT = f"moorage_extender_http_timeout_seconds{{{GATEWAY}}}"

DAY = 86_400
"""promtool's clock begins at 0, so a certificate that expires at DAY has a day left then."""


def steady(value: float) -> str:
    """Return the notation of a constant."""
    return f"{value:g}x{MINUTES}"


def growing(each_minute: float) -> str:
    """Return the notation of a counter."""
    return f"0+{each_minute:g}x{MINUTES}"


def requests(verb: str, result: str) -> str:
    """Return a series of extender calls."""
    labels = f'{GATEWAY},verb="{verb}",result="{result}"'
    return f"moorage_extender_requests_total{{{labels}}}"


def ready(service: str) -> str:
    """Return the series of replicas that take part."""
    return f'moorage_replicas_ready{{{GATEWAY},service="{service}"}}'


def build(service: str, version: str = "1.0.0") -> str:
    """Return the series of a process's version."""
    labels = f'namespace="moorage",pod="{service}-0",service="{service}",version="{version}"'
    return f"moorage_build_info{{{labels}}}"


def certificate(what: str) -> str:
    """Return the series of a certificate's start or expiry."""
    name = f"moorage_tls_certificate_{what}_timestamp_seconds"
    return f'{name}{{{GATEWAY},identity="moorage-gateway"}}'


def durations(verb: str, seconds: float, each_minute: float = 60) -> dict[str, str]:
    """Return the histogram of calls that all take up to a bucket's bound."""
    found = {}
    for bound in (0.064, 1.024, 4.096):
        labels = f'{GATEWAY},verb="{verb}",result="ok",le="{bound}"'
        name = f"moorage_extender_request_duration_seconds_bucket{{{labels}}}"
        found[name] = growing(each_minute if seconds <= bound else 0)
    everything = f'{GATEWAY},verb="{verb}",result="ok",le="+Inf"'
    name = f"moorage_extender_request_duration_seconds_bucket{{{everything}}}"
    return {**found, name: growing(each_minute)}


def queue(seconds: float) -> dict[str, str]:
    """Return the histogram of cycles that all wait up to a bucket's bound."""
    bounds = {"0.0001": 0.0001, "1.6384": 1.6384, "3.2768": 3.2768, "+Inf": 1e9}
    return {
        f'moorage_cycle_queue_seconds_bucket{{{GATEWAY},le="{text}"}}': growing(
            60 if seconds <= bound else 0
        )
        for text, bound in bounds.items()
    }


LEADER = f"moorage_leader{{{GATEWAY}}}"
AGE = f'moorage_cache_age_seconds{{{GATEWAY},resource="pods"}}'
REFUSED = f'moorage_http_refused_total{{{GATEWAY},port="extender",reason="handshake"}}'
ANSWERED = (
    'moorage_metrics_last_answer_timestamp_seconds{namespace="moorage",pod="scorer-0",'
    'source="load"}'
)
ANNOTATED = (
    'moorage_annotator_last_success_timestamp_seconds{namespace="moorage",pod="annotator-0"}'
)
BOUND = 'moorage_binds_total{namespace="moorage",pod="binder-0",outcome="bound"}'
DEADLINE = 'moorage_binds_total{namespace="moorage",pod="binder-0",outcome="deadline"}'
FAILURES = f'moorage_plugin_failures_total{{{GATEWAY},plugin="Load",phase="score"}}'
BIND_PLUGIN = (
    'moorage_bind_plugin_results_total{namespace="moorage",pod="binder-0",plugin="Gang",'
    'point="permit",result="failed"}'
)
BACKGROUND = 'moorage_background_failures_total{namespace="moorage",pod="scorer-0",plugin="Load"}'
POLICY = f"moorage_policy_file_refused{{{GATEWAY}}}"
TERMS = f"moorage_leader_transitions_total{{{GATEWAY}}}"
DIFFERENCES = 'moorage_cache_differences_total{namespace="moorage",pod="filter-0",phase="filter"}'

WELL: Series = {
    LEADER: steady(1),
    'moorage_leader{namespace="moorage",pod="gateway-1"}': steady(0),
    **{build(each): steady(1) for each in ("gateway", "filter", "scorer", "binder")},
    ready("filter"): steady(1),
    ready("scorer"): steady(2),
    ready("binder"): steady(0),  # it counts only where bind plugins read the state
    'moorage_replicas_ready{namespace="moorage",pod="gateway-1",service="filter"}': steady(0),
    AGE: "0 20 40 60 0 20 40 60 " * (MINUTES // 8),
    **{requests(v, "ok"): growing(600) for v in ("filter", "prioritize", "bind")},
    **{requests(v, "failed"): growing(6) for v in ("filter", "prioritize")},
    requests("bind", "failed"): growing(120),  # checks at the bind, and Permit that refuses
    **durations("filter", 0.05),
    **durations("bind", 4),  # Permit waits
    **queue(0.0001),
    TIMEOUT: steady(5),
    REFUSED: growing(10),  # somebody else than kube-scheduler
    certificate("start"): steady(-DAY / 2),
    certificate("expiry"): steady(DAY),
    FAILURES: "0x30 1x90",  # once
    BIND_PLUGIN: steady(3),
    BACKGROUND: steady(2),
    POLICY: "0x20 1x5 0x90",  # it is right again before anybody is called
    BOUND: growing(600),
    DEADLINE: growing(6),
    TERMS: steady(3),
    DIFFERENCES: steady(0),
    ANSWERED: "0+60x120",
    ANNOTATED: "0+60x120",
}
"""An installation that is well for two hours, with what is normal now and then."""
