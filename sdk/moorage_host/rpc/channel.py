"""Connects to a service of Moorage; the only place that knows the client's options."""

import re
from typing import Any

import grpc
import msgspec

from moorage.errors import ConfigurationError
from moorage_host.rpc.credentials import channel_credentials
from moorage_host.tls.security import LOOPBACK, Security

LARGEST_MESSAGE = 64 << 20
"""Bytes of a message, either way: a full snapshot's part, 100,000 node names."""

_TARGET = re.compile(
    r"(dns:///)?(\[[0-9a-fA-F:.]+(%[\w.-]+)?\]|[A-Za-z0-9._-]+):[0-9]{1,5}|unix:.+"
)

_RETRIES = {
    "maxAttempts": 3,
    "initialBackoff": "0.05s",
    "maxBackoff": "0.5s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}

_OPTIONS = (
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.per_rpc_retry_buffer_size", 8 << 20),  # a larger request is not retried
    ("grpc.use_local_subchannel_pool", 1),  # a new channel must not wait for an older one's backoff
    ("grpc.dns_min_time_between_resolutions_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A server that was killed is back in seconds, and calls wait for nothing but the next attempt.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 3_000),  # what one attempt may take, handshake included
    (
        "grpc.enable_http_proxy",
        0,
    ),  # a proxy for the outside world must not see calls in the cluster
)


def connect(
    target: str,
    service: str = "",
    *,
    security: Security = LOOPBACK,
    identity: str = "",
    keepalive: tuple[float, float] = (10.0, 5.0),
) -> grpc.aio.Channel:
    """Return a channel; calls go in turn to all addresses that the target has.

    Calls that fail with UNAVAILABLE are tried three times in all: every method of Moorage may be
    repeated. Always give calls a timeout of their own.

    Args:
        target: "host:port", "dns:///host:port" or "unix:/path".
        service: Optional. The full name of a service. Addresses where its health is not SERVING get
            no new calls; sessions that are open stay open.
        security: The certificates of this process, which a channel keeps for all its time.
        identity: The DNS name that the server must prove; without it, the target's host.
        keepalive: Seconds without a message until the server is asked for a sign of life, and for
            which it may be missing; then the connection is given up.

    Raises:
        ConfigurationError: The target has another form, or plain text may not be sent there.
    """
    require_reachable(target, security)
    config = msgspec.json.encode(_service_config(service)).decode()
    silence, timeout = (round(1000 * seconds) for seconds in keepalive)
    options: list[tuple[str, Any]] = [
        *_OPTIONS,
        ("grpc.service_config", config),
        ("grpc.keepalive_time_ms", silence),
        ("grpc.keepalive_timeout_ms", timeout),
        ("grpc.http2.ping_timeout_ms", timeout),  # by default a minute, and no earlier than that
    ]
    if security.certificates is None:
        return grpc.aio.insecure_channel(target, options)
    if identity:
        options.append(("grpc.ssl_target_name_override", identity))
    return grpc.aio.secure_channel(
        target, channel_credentials(security.certificates.current), options
    )


def require_reachable(target: str, security: Security) -> None:
    """Check a target before anything connects to it.

    Raises:
        ConfigurationError: It has another form, or plain text may not be sent there.
    """
    if not _TARGET.fullmatch(target):
        raise ConfigurationError(
            f'cannot connect to "{target}": write host:port, such as filter:50051 or '
            "dns:///filter.moorage.svc:50051"
        )
    host = (
        target if target.startswith("unix:") else target.removeprefix("dns:///").rpartition(":")[0]
    )
    security.require(f"connect to {target}", host)


def _service_config(service: str) -> dict[str, Any]:
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": [{}], "retryPolicy": _RETRIES}],
        "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1},
    }
    return config | ({"healthCheckConfig": {"serviceName": service}} if service else {})
