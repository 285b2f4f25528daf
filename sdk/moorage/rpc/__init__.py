"""What every Moorage process needs around its own work: gRPC, health, metrics, logs, signals.

Plugins need nothing of this; it comes with the extra `moorage[rpc]`. Import from the modules:

    errors       CallError, and the one table from exceptions to gRPC's status codes
    interceptor  status, metrics and log context of every call
    serve        runs a gRPC service from start to drain
    process      signals, exit codes, settings that all processes share
    admin        /livez, /readyz, /metrics
    channel      connects to a service
    convert      protobuf <-> models
    metrics      what all processes count
    logs         one line for each event
"""

import os

# gRPC's core writes lines of its own on stderr; it reads this once, when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
