"""What all processes count, and helpers for what each counts besides.

Names start with `moorage_`, except for gRPC's, where dashboards expect the usual ones. Labels never
hold names of nodes or pods.
"""

from prometheus_client import Counter, Histogram

CALLS = Counter(
    "grpc_server_handled_total",
    "Calls that ended, by status code; calls of methods that do not exist count as unknown.",
    ("grpc_service", "grpc_method", "grpc_code"),
)

CALL_SECONDS = Histogram(
    "grpc_server_handling_seconds",
    "Time from the start of a call to its end; for a stream, the time that it was open.",
    ("grpc_service", "grpc_method"),
    buckets=tuple(0.0005 * 2**power for power in range(15)),
)
